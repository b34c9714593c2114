#include "server/pgwire/certificate.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <memory>
#include <set>

namespace sluice::server::pgwire {
namespace {

constexpr int64_t kDaySeconds = 86'400;
constexpr int64_t kValidSeconds = 3'652 * kDaySeconds;  // ten years
constexpr int kSerialBits = 127;
constexpr size_t kMostHostBytes = 253;       // of a name in DNS
constexpr size_t kMostCommonNameBytes = 64;  // ub-common-name

template <auto kFree>
struct Freed {
  template <typename Object>
  void operator()(Object* object) const {
    kFree(object);
  }
};
using KeyPointer = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using CertificatePointer = std::unique_ptr<X509, Freed<X509_free>>;
using BioPointer = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using NumberPointer = std::unique_ptr<BIGNUM, Freed<BN_free>>;
using ExtensionPointer = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;

Status OpensslFailed(std::string_view what) {
  ERR_clear_error();
  return Internal(fmt::format("OpenSSL cannot {}", what));
}

BioPointer ReadingBio(std::string_view bytes) {
  return BioPointer(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

std::string Written(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

// Do not prompt for a key's passphrase.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) {
  return -1;
}

Result<KeyPointer> ReadKey(std::string_view pem) {
  const BioPointer bio = ReadingBio(pem);
  KeyPointer key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  if (key == nullptr) {
    ERR_clear_error();
    return FailedPrecondition("the private key is damaged, or is none");
  }
  return key;
}

Result<CertificatePointer> ReadCertificate(std::string_view pem) {
  const BioPointer bio = ReadingBio(pem);
  CertificatePointer certificate(PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr));
  if (certificate == nullptr) {
    ERR_clear_error();
    return FailedPrecondition("the certificate is damaged, or is none");
  }
  return certificate;
}

bool IsAddress(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

bool IsHostName(std::string_view host) {
  return !host.empty() && host.size() <= kMostHostBytes &&
         std::all_of(host.begin(), host.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
         });
}

// "DNS:host,DNS:localhost,IP:127.0.0.1,IP:::1".
std::string AlternativeNames(const std::string& host) {
  const std::set<std::string> names = {(IsAddress(host) ? "IP:" : "DNS:") + host, "DNS:localhost",
                                       "IP:127.0.0.1", "IP:::1"};
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ",") + name;
  }
  return text;
}

bool AddExtension(X509* certificate, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const ExtensionPointer extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool SetSerial(X509* certificate) {
  const NumberPointer serial(BN_new());
  return serial != nullptr && BN_rand(serial.get(), kSerialBits, 0, 0) == 1 &&
         BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool SetNames(X509* certificate, const std::string& host) {
  const std::string common = host.size() <= kMostCommonNameBytes ? host : "sluice";
  X509_NAME* name = X509_get_subject_name(certificate);
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(common.data()),
                                    static_cast<int>(common.size()), -1, 0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1;
}

bool SetValidity(X509* certificate, int64_t now_seconds) {
  // Valid from a day ago, for clients whose clocks are slow.
  return ASN1_TIME_set(X509_getm_notBefore(certificate), now_seconds - kDaySeconds) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), now_seconds + kValidSeconds) != nullptr;
}

Result<std::string> EndPointOf(const X509& certificate) {
  int digest_nid = NID_undef;
  const bool known = X509_get_signature_info(const_cast<X509*>(&certificate), &digest_nid, nullptr,
                                             nullptr, nullptr) == 1;
  if (digest_nid == NID_md5 || digest_nid == NID_sha1) {
    digest_nid = NID_sha256;
  }
  const EVP_MD* digest = known ? EVP_get_digestbynid(digest_nid) : nullptr;
  if (digest == nullptr) {
    ERR_clear_error();
    return Unimplemented(
               "a channel cannot be bound to a certificate that is signed without a digest")
        .Hint("use a certificate that is signed with ECDSA or RSA");
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned int size = 0;
  if (X509_digest(&certificate, digest, hash.data(), &size) != 1) {
    return OpensslFailed("hash a certificate");
  }
  return std::string(reinterpret_cast<const char*>(hash.data()), size);
}

}  // namespace

Result<std::string> MakePrivateKey() {
  const KeyPointer key(EVP_EC_gen("P-256"));
  const BioPointer bio(BIO_new(BIO_s_mem()));
  if (key == nullptr || bio == nullptr ||
      PEM_write_bio_PKCS8PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1) {
    return OpensslFailed("make a private key");
  }
  return Written(bio.get());
}

Result<std::string> CertifyKey(std::string_view key, std::string_view host, int64_t now_seconds) {
  const std::string name(host);
  if (!IsAddress(name) && !IsHostName(name)) {
    return InvalidArgument(fmt::format("a certificate cannot be made for host '{:.80}'", host))
        .Hint("a host's name has letters, digits, dots and hyphens");
  }
  ASSIGN_OR_RETURN(const KeyPointer signer, ReadKey(key));
  const CertificatePointer certificate(X509_new());
  const bool made = certificate != nullptr &&
                    X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
                    SetSerial(certificate.get()) && SetNames(certificate.get(), name) &&
                    SetValidity(certificate.get(), now_seconds) &&
                    X509_set_pubkey(certificate.get(), signer.get()) == 1 &&
                    AddExtension(certificate.get(), NID_basic_constraints, "critical,CA:FALSE") &&
                    AddExtension(certificate.get(), NID_key_usage, "critical,digitalSignature") &&
                    AddExtension(certificate.get(), NID_ext_key_usage, "serverAuth") &&
                    AddExtension(certificate.get(), NID_subject_alt_name, AlternativeNames(name)) &&
                    X509_sign(certificate.get(), signer.get(), EVP_sha256()) > 0;
  const BioPointer bio(BIO_new(BIO_s_mem()));
  if (!made || bio == nullptr || PEM_write_bio_X509(bio.get(), certificate.get()) != 1) {
    return OpensslFailed("make a certificate");
  }
  return Written(bio.get());
}

Status CheckCertificate(const Certificate& certificate, int64_t now_seconds) {
  ASSIGN_OR_RETURN(const KeyPointer key, ReadKey(certificate.key));
  ASSIGN_OR_RETURN(const CertificatePointer read, ReadCertificate(certificate.certificate));
  if (X509_check_private_key(read.get(), key.get()) != 1) {
    ERR_clear_error();
    return FailedPrecondition("the certificate and the private key do not belong together");
  }
  std::time_t now = now_seconds;
  if (X509_cmp_time(X509_get0_notAfter(read.get()), &now) <= 0) {
    return FailedPrecondition("the certificate has expired");
  }
  return OkStatus();
}

Result<std::string> CertificateFingerprint(std::string_view certificate) {
  ASSIGN_OR_RETURN(const CertificatePointer read, ReadCertificate(certificate));
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned int size = 0;
  if (X509_digest(read.get(), EVP_sha256(), hash.data(), &size) != 1) {
    return OpensslFailed("hash a certificate");
  }
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += fmt::format("{}{:02X}", i == 0 ? "" : ":", static_cast<unsigned>(hash[i]));
  }
  return text;
}

Result<std::string> TlsServerEndPoint(std::string_view der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const unsigned char* const end = at + der.size();
  const CertificatePointer read(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  if (read == nullptr || at != end) {
    ERR_clear_error();
    return FailedPrecondition("the certificate is damaged, or is none");
  }
  return EndPointOf(*read);
}

}  // namespace sluice::server::pgwire
