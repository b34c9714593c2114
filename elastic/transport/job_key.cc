#include "elastic/transport/job_key.h"

#include <elf.h>
#include <fmt/core.h>
#include <link.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstring>
#include <memory>

#include "base/same_secret.h"

namespace sluice::elastic {
namespace {

template <auto free>
struct Freed {
  template <typename Object>
  void operator()(Object* object) const {
    free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;
using Memory = std::unique_ptr<BIO, Freed<BIO_free>>;

// Clocks of machines differ by less than this.
constexpr long kBeforeSeconds = -24L * 3600;
constexpr long kAfterSeconds = 10L * 365 * 24 * 3600;

bool Extend(X509* certificate, int what, const char* value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, what, value));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool Fill(X509* certificate, EVP_PKEY* key) {
  X509_NAME* const name = X509_get_subject_name(certificate);
  return X509_set_version(certificate, 2) == 1 &&
         ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1 &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), kBeforeSeconds) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), kAfterSeconds) != nullptr &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                    reinterpret_cast<const unsigned char*>(kJobName), -1, -1,
                                    0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
         Extend(certificate, NID_basic_constraints, "critical,CA:TRUE") &&
         Extend(certificate, NID_subject_alt_name, fmt::format("DNS:{}", kJobName).c_str()) &&
         X509_sign(certificate, key, EVP_sha256()) > 0;
}

std::string TextOf(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return {data, static_cast<size_t>(size)};
}

int TakeBuildId(dl_phdr_info* program, size_t /*size*/, void* result) {
  for (int i = 0; i < program->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = program->dlpi_phdr[i];
    if (header.p_type != PT_NOTE) {
      continue;
    }
    const char* at = reinterpret_cast<const char*>(program->dlpi_addr + header.p_vaddr);
    const char* const end = at + header.p_memsz;
    constexpr size_t kAligned = 3;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof(note));
      const char* const name = at + sizeof(note);
      const char* const content = name + ((note.n_namesz + kAligned) & ~kAligned);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
          std::memcmp(name, "GNU", sizeof("GNU")) == 0) {
        for (size_t byte = 0; byte < note.n_descsz; ++byte) {
          *static_cast<std::string*>(result) +=
              fmt::format("{:02x}", static_cast<unsigned char>(content[byte]));
        }
        return 1;
      }
      at = content + ((note.n_descsz + kAligned) & ~kAligned);
    }
  }
  return 1;  // the first is the program; its libraries follow
}

}  // namespace

Result<JobKey> MakeJobKey(std::string token) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  const Memory certificate_text(BIO_new(BIO_s_mem())), key_text(BIO_new(BIO_s_mem()));
  if (key == nullptr || certificate == nullptr || !Fill(certificate.get(), key.get()) ||
      PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1) {
    return Internal("no key pair can be made for the job");
  }
  JobKey made(std::move(token));
  made.certificate = TextOf(certificate_text.get());
  made.private_key = TextOf(key_text.get());
  return made;
}

Status CheckMember(const JobKey& key, std::string_view token, std::string_view build) {
  if (!SameSecret(token, key.token)) {
    return Status(Code::kPermissionDenied, "this process belongs to another job");
  }
  if (key.encrypts() && build != BuildId()) {
    return FailedPrecondition(fmt::format("all processes of a job are of one build: the one that "
                                          "calls is {}, the one that it calls is {}",
                                          build, BuildId()))
        .Hint("name the image of the pods by its digest");
  }
  return Status();
}

const std::string& BuildId() {
  static const std::string id = [] {
    std::string found;
    dl_iterate_phdr(TakeBuildId, &found);
    return found;
  }();
  return id;
}

}  // namespace sluice::elastic
