#include "server/pgwire/ticket.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <memory>
#include <utility>

#include "base/check.h"
#include "server/pgwire/digests_internal.h"
#include "server/pgwire/messages.h"

namespace sluice::server::pgwire {
namespace {

constexpr size_t kNonceBytes = 12;  // GCM's own length
constexpr size_t kTagBytes = 16;

struct CipherFree {
  void operator()(EVP_CIPHER_CTX* cipher) const { EVP_CIPHER_CTX_free(cipher); }
};
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, CipherFree>;

unsigned char* Raw(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}
const unsigned char* RawOf(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  SLUICE_CHECK(RAND_bytes(Raw(bytes), static_cast<int>(count)) == 1, "no random numbers");
  return bytes;
}

void AppendField(std::string& out, std::string_view field) {
  AppendUint32(out, static_cast<uint32_t>(field.size()));
  out += field;
}

Status NoTicket() {
  return Status(Code::kPermissionDenied, "the ticket was not issued by this gateway")
      .SqlState("28000");
}

}  // namespace

TicketOffice::TicketOffice() : key_(RandomBytes(kKeyBytes)) {}

TicketOffice::~TicketOffice() {
  Forget(&key_);
}

std::string TicketOffice::Issue(const TicketLogin& login) const {
  std::string plain;
  AppendField(plain, login.user);
  AppendField(plain, login.database);
  AppendField(plain, login.keys.client_key);
  AppendField(plain, login.keys.server_key);
  const std::string nonce = RandomBytes(kNonceBytes);
  std::string sealed(plain.size(), '\0');
  std::string tag(kTagBytes, '\0');
  int size = 0;
  const Cipher cipher(EVP_CIPHER_CTX_new());
  const bool done =
      EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, RawOf(std::string_view(key_)),
                         RawOf(std::string_view(nonce))) == 1 &&
      EVP_EncryptUpdate(cipher.get(), Raw(sealed), &size, RawOf(std::string_view(plain)),
                        static_cast<int>(plain.size())) == 1 &&
      EVP_EncryptFinal_ex(cipher.get(), Raw(sealed) + size, &size) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data()) == 1;
  SLUICE_CHECK(done, "AES-256-GCM encrypts any bytes");
  Forget(&plain);
  return EncodeBase64(nonce + tag + sealed);
}

Result<TicketLogin> TicketOffice::Read(std::string_view ticket) const {
  Result<std::string> bytes = FromBase64(ticket);
  if (!bytes.ok() || bytes->size() < kNonceBytes + kTagBytes) {
    return NoTicket();
  }
  const std::string_view nonce = std::string_view(*bytes).substr(0, kNonceBytes);
  std::string tag = bytes->substr(kNonceBytes, kTagBytes);
  const std::string_view sealed = std::string_view(*bytes).substr(kNonceBytes + kTagBytes);
  std::string plain(sealed.size(), '\0');
  int size = 0;
  const Cipher cipher(EVP_CIPHER_CTX_new());
  const bool right =
      EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, RawOf(std::string_view(key_)),
                         RawOf(nonce)) == 1 &&
      EVP_DecryptUpdate(cipher.get(), Raw(plain), &size, RawOf(sealed),
                        static_cast<int>(sealed.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) == 1 &&
      EVP_DecryptFinal_ex(cipher.get(), Raw(plain) + size, &size) == 1;
  if (!right) {
    Forget(&plain);
    return NoTicket();
  }
  BigEndianReader reader(plain);
  TicketLogin login;
  for (std::string* field :
       {&login.user, &login.database, &login.keys.client_key, &login.keys.server_key}) {
    *field = reader.Bytes(reader.Take<uint32_t>());
  }
  SLUICE_CHECK(reader.at_end(), "a ticket of this gateway's is whole");
  Forget(&plain);
  return login;
}

}  // namespace sluice::server::pgwire
