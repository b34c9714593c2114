#include "server/pgwire/certificate.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "server/pgwire/certificate_files.h"

namespace sluice::server::pgwire {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNow = 1'764'000'000;  // 2025-11-24
constexpr int64_t kYear = 365 * 86'400;

// Made by openssl: ECDSA with SHA-384, RSA with SHA-1, RSA-PSS with SHA-384, Ed25519.
constexpr const char* kSha384 =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBbjCCARWgAwIBAgIUCxHwTf4APR6hLxHgJ7GfIse5sEcwCgYIKoZIzj0EAwMw\n"
    "DDEKMAgGA1UEAwwBYTAgFw0yNjExMjMwODA3MDRaGA8yMTI2MTAzMDA4MDcwNFow\n"
    "DDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOL5jMXl9g/0\n"
    "reTqKbm7uSc0q5Jv1rMguFLfup0nIBlGvVwOQy/nHcRE1KFjg6kPPXUgb/5Rqtum\n"
    "qRaeGJQER0ejUzBRMB0GA1UdDgQWBBQ7osvWlQfpVN4bQiL4a7PK51uQyTAfBgNV\n"
    "HSMEGDAWgBQ7osvWlQfpVN4bQiL4a7PK51uQyTAPBgNVHRMBAf8EBTADAQH/MAoG\n"
    "CCqGSM49BAMDA0cAMEQCICRZhkvDL5xH0tbY3qwidzJWf99q1NtGLMTi0wweA+f0\n"
    "AiBfm3ZiM0TP4o1Zo5eHNiNfzJb4oclR4kvDc1W0cljEKQ==\n"
    "-----END CERTIFICATE-----\n";
constexpr const char* kSha1 =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIB9jCCAV+gAwIBAgIUIrpmbVsc4EhnFdp4fxDqO2XiE88wDQYJKoZIhvcNAQEF\n"
    "BQAwDDEKMAgGA1UEAwwBYTAgFw0yNjExMjMwODA3MDRaGA8yMTI2MTAzMDA4MDcw\n"
    "NFowDDEKMAgGA1UEAwwBYTCBnzANBgkqhkiG9w0BAQEFAAOBjQAwgYkCgYEA9rvs\n"
    "QOKar4VaAtNlCOfs/fQ4g3/emG33wbY4EgjzjyRhSdpTchInDWG6pXGq2TvkPOfc\n"
    "/7hrlT73WLku5uDMDNst3L1D5xv5VeCVGt0lh5AiZ+GqBuJ3cVKrkg5+hEEb/uHt\n"
    "Mep033qD6CQb1Vt3D3Jiuu5oAIL5pFklFj3Ix/8CAwEAAaNTMFEwHQYDVR0OBBYE\n"
    "FMRMrUyqPaFgFkZBiUwQj3C4dGucMB8GA1UdIwQYMBaAFMRMrUyqPaFgFkZBiUwQ\n"
    "j3C4dGucMA8GA1UdEwEB/wQFMAMBAf8wDQYJKoZIhvcNAQEFBQADgYEABDB18WoE\n"
    "/HbYOTUXiyQUmAmF+FQ/Ie2XuFPGQCZtByBVUM3Inh/IlA39pIhQSFnJwI1ORSzo\n"
    "tvx/TQ8jOo0iY58oIynXHXuYhvASRWGoJl2ZX4DZbquxQLfPfQQJzhzzcbnePEth\n"
    "pfPSjqRXh67FQQymzyUM1Ou7zG27YQ4wGUs=\n"
    "-----END CERTIFICATE-----\n";
constexpr const char* kPss =
    "-----BEGIN CERTIFICATE-----\n"
    "MIICVDCCAY6gAwIBAgIUALEtbHyIMx6AOKlUWPoD05HPLy8wPAYJKoZIhvcNAQEK\n"
    "MC+gDzANBglghkgBZQMEAgIFAKEcMBoGCSqGSIb3DQEBCDANBglghkgBZQMEAgIF\n"
    "ADAMMQowCAYDVQQDDAFhMCAXDTI2MTEyMzA4MDgxN1oYDzIxMjYxMDMwMDgwODE3\n"
    "WjAMMQowCAYDVQQDDAFhMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCjw9qg\n"
    "oI1TlcrK5nLsf+OL4EXPtjH45Ox6HIyVLJqBVEqtWdBIzbexjvYUT3gAijSzGCPV\n"
    "sfZWtKdOxcFlsxF55ElX1W1Q9jJX4f72AIyxLAmzSRtUoxQvMOSCappB8d2M6HAa\n"
    "PBDO0t4uKWRL3pQb6wL84nt006pSgsf4cCQj6QIDAQABo1MwUTAdBgNVHQ4EFgQU\n"
    "tReRllT+fetUG9lMXwA0tGbcudYwHwYDVR0jBBgwFoAUtReRllT+fetUG9lMXwA0\n"
    "tGbcudYwDwYDVR0TAQH/BAUwAwEB/zA8BgkqhkiG9w0BAQowL6APMA0GCWCGSAFl\n"
    "AwQCAgUAoRwwGgYJKoZIhvcNAQEIMA0GCWCGSAFlAwQCAgUAA4GBAA2r6jmOsj8N\n"
    "jb9igHuex7mCaN4vtCIifzgXuMkWNj/P/rRREpO7nScYQL8D0pdgy7s15csoiwzy\n"
    "tAZQDFywN/dMN9xsTr3+nNVr4N1RKg7psZ5BZPYW77jLbxA7/f5ye18RkM2FIOQz\n"
    "Y2HKBQEtnIE6XEUv76+MluwXaigSmb5X\n"
    "-----END CERTIFICATE-----\n";
constexpr const char* kEd25519 =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBLjCB4aADAgECAhRLPPu0KzuKUh+qhy1Rn8K7dQeFmzAFBgMrZXAwDDEKMAgG\n"
    "A1UEAwwBYTAgFw0yNjExMjMwODA3MDRaGA8yMTI2MTAzMDA4MDcwNFowDDEKMAgG\n"
    "A1UEAwwBYTAqMAUGAytlcAMhAHdCqztY/oPJBIocEGmOsRjTSDoHmN6BPjjYEbTR\n"
    "BOYLo1MwUTAdBgNVHQ4EFgQUsc+broFFc4kcdLr0/AIo1HxUqx8wHwYDVR0jBBgw\n"
    "FoAUsc+broFFc4kcdLr0/AIo1HxUqx8wDwYDVR0TAQH/BAUwAwEB/zAFBgMrZXAD\n"
    "QQArupPY+GB/Ow7gDFvx4/AxLep2CjcHfh/swYNlt64XCShvxq2Wa2dEqbbCEdmZ\n"
    "fZ9DAJwgTcxhEjz9EV+2NOgO\n"
    "-----END CERTIFICATE-----\n";

std::string Hex(const std::string& bytes) {
  std::string hex;
  for (const char c : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(c) >> 4U];
    hex += kDigits[static_cast<unsigned char>(c) & 0xFU];
  }
  return hex;
}

std::string DerOf(const std::string& pem) {
  BIO* const bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* const certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  std::string der(static_cast<size_t>(i2d_X509(certificate, nullptr)), '\0');
  auto* at = reinterpret_cast<unsigned char*>(der.data());
  i2d_X509(certificate, &at);
  X509_free(certificate);
  return der;
}

Result<std::string> EndPointOfPem(const std::string& pem) {
  return TlsServerEndPoint(DerOf(pem));
}

TEST(Certificate, AChannelIsBoundByTheDigestOfTheSignature) {
  EXPECT_EQ(Hex(EndPointOfPem(kSha384).value()),
            "7a6bb1b0d24ab550ac473f4b71f19f72b45a657009ceb65bb54730d21681d148be9b59a9da098e704387a1"
            "adfd7aa4b9");
  EXPECT_EQ(Hex(EndPointOfPem(kSha1).value()),  // by SHA-256
            "4520be352f1fef7245c28cbbbfae2fc32c521b281176517e71572fd9400acd62");
  EXPECT_EQ(Hex(EndPointOfPem(kPss).value()),
            "0a4c2039bcbf9cbba9995375f9588ec006c3b3fd48aa38c63d14f8df523c78545c11d84792b3919aa6b5ba"
            "0cb4baa5a5");
  EXPECT_EQ(EndPointOfPem(kEd25519).status().sqlstate(), "0A000");
  EXPECT_EQ(TlsServerEndPoint("none").status().sqlstate(), "55000");
  EXPECT_EQ(CertificateFingerprint(kSha384).value(),
            "E0:43:58:B2:5F:EE:61:9E:7D:58:03:97:AC:93:9B:A9:6C:FC:54:D8:4A:12:D7:95:68:A6:76:95:"
            "CE:A1:56:2E");
}

class Parsed {
 public:
  explicit Parsed(const std::string& pem) {
    BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
    x509 = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    BIO_free(bio);
  }
  ~Parsed() { X509_free(x509); }
  Parsed(const Parsed&) = delete;
  Parsed& operator=(const Parsed&) = delete;

  // Whether a client that trusts only this certificate accepts it for that host at that time.
  bool Trusted(const char* host, int64_t seconds) const {
    X509_STORE* store = X509_STORE_new();
    X509_STORE_add_cert(store, x509);
    X509_STORE_CTX* context = X509_STORE_CTX_new();
    X509_STORE_CTX_init(context, store, x509, nullptr);
    X509_VERIFY_PARAM* parameters = X509_STORE_CTX_get0_param(context);
    X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_SERVER);
    X509_VERIFY_PARAM_set_time(parameters, seconds);
    if (X509_VERIFY_PARAM_set1_ip_asc(parameters, host) != 1) {
      X509_VERIFY_PARAM_set1_host(parameters, host, 0);
    }
    const bool trusted = X509_verify_cert(context) == 1;
    X509_STORE_CTX_free(context);
    X509_STORE_free(store);
    return trusted;
  }

  X509* x509 = nullptr;
};

TEST(Certificate, IsTheHostsForTenYears) {
  const std::string key = MakePrivateKey().value();
  const std::string pem = CertifyKey(key, "gateway.example", kNow).value();
  const Parsed certificate(pem);
  for (const char* host : {"gateway.example", "localhost", "127.0.0.1", "::1"}) {
    EXPECT_TRUE(certificate.Trusted(host, kNow)) << host;
  }
  for (const char* host : {"other.example", "127.0.0.2", "example", "sub.gateway.example"}) {
    EXPECT_FALSE(certificate.Trusted(host, kNow)) << host;
  }
  EXPECT_TRUE(certificate.Trusted("localhost", kNow - 3600));
  EXPECT_TRUE(certificate.Trusted("localhost", kNow + 10 * kYear));
  EXPECT_FALSE(certificate.Trusted("localhost", kNow + 10 * kYear + 3 * 86'400));
  EXPECT_EQ(X509_check_ca(certificate.x509), 0) << "it may certify others";
  EXPECT_EQ(EndPointOfPem(pem)->size(), 32U);
  EXPECT_EQ(EVP_PKEY_get_bits(X509_get0_pubkey(certificate.x509)), 256);

  EXPECT_TRUE(CheckCertificate({pem, key}, kNow).ok());
  EXPECT_EQ(CheckCertificate({pem, key}, kNow + 11 * kYear).message(),
            "the certificate has expired");
  EXPECT_EQ(CheckCertificate({pem, MakePrivateKey().value()}, kNow).message(),
            "the certificate and the private key do not belong together");
  EXPECT_FALSE(CheckCertificate({pem, key.substr(0, key.size() / 2)}, kNow).ok());
  EXPECT_FALSE(CheckCertificate({pem.substr(0, pem.size() / 2), key}, kNow).ok());
}

TEST(Certificate, OfAnAddressAndOfNoHost) {
  const std::string key = MakePrivateKey().value();
  EXPECT_TRUE(Parsed(CertifyKey(key, "10.1.2.3", kNow).value()).Trusted("10.1.2.3", kNow));
  EXPECT_TRUE(Parsed(CertifyKey(key, "fe80::7", kNow).value()).Trusted("fe80::7", kNow));
  EXPECT_TRUE(Parsed(CertifyKey(key, "localhost", kNow).value()).Trusted("localhost", kNow));
  const std::string longest = std::string(63, 'a') + "." + std::string(63, 'b') + ".example";
  EXPECT_TRUE(Parsed(CertifyKey(key, longest, kNow).value()).Trusted(longest.c_str(), kNow));
  for (const char* host : {"", "a,DNS:evil.example", "a b", "a\nb", "*.example", "@section"}) {
    EXPECT_EQ(CertifyKey(key, host, kNow).status().sqlstate(), "22023") << host;
  }
  EXPECT_EQ(CertifyKey("none", "localhost", kNow).status().sqlstate(), "55000");
}

class CertificateFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/sluice-certificate-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    above_ = pattern;
    folder_ = above_ + "/tls";
  }
  void TearDown() override { fs::remove_all(above_); }

  Result<Certificate> Keep(int64_t now = kNow) {
    return KeepCertificate(folder_, "gateway.example", now);
  }
  // Its error, after checking that following the hint resolves it.
  std::string Refused() {
    const auto kept = Keep();
    EXPECT_FALSE(kept.ok());
    EXPECT_NE(kept.status().diagnostics()[0].hint, "") << kept.status().ToString();
    return kept.status().message();
  }
  std::string Path(const char* name) const { return folder_ + "/" + name; }
  static std::string ReadText(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static void Write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  static unsigned ModeOf(const std::string& path) {
    struct stat facts {};
    EXPECT_EQ(stat(path.c_str(), &facts), 0);
    return facts.st_mode & 07777U;
  }

  std::string above_;
  std::string folder_;
};

TEST_F(CertificateFiles, ArePrivateAndStayTheSame) {
  const auto made = Keep();
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_EQ(ModeOf(folder_), 0700U);
  EXPECT_EQ(ModeOf(Path(kKeyFile)), 0600U);
  EXPECT_EQ(ModeOf(Path(kCertificateFile)), 0600U);
  EXPECT_EQ(ReadText(Path(kKeyFile)), made->key);
  const auto again = Keep(kNow + kYear);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->key, made->key);
  EXPECT_EQ(again->certificate, made->certificate);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

TEST_F(CertificateFiles, AKeyThatIsThereIsCertified) {
  const std::string key = Keep()->key;
  fs::remove(Path(kCertificateFile));  // a gateway that was killed between the two
  const auto kept = Keep();
  ASSERT_TRUE(kept.ok()) << kept.status().ToString();
  EXPECT_EQ(kept->key, key);
  EXPECT_TRUE(CheckCertificate(*kept, kNow).ok());
}

TEST_F(CertificateFiles, WhatIsDamagedIsRefused) {
  const Certificate made = Keep().value();
  Write(Path(kKeyFile), made.key.substr(0, 100));
  EXPECT_EQ(Refused(), "'" + folder_ + "': the private key is damaged, or is none");
  Write(Path(kKeyFile), "");
  EXPECT_EQ(Refused(), "'" + folder_ + "': the private key is damaged, or is none");
  Write(Path(kKeyFile), MakePrivateKey().value());
  EXPECT_EQ(Refused(),
            "'" + folder_ + "': the certificate and the private key do not belong together");
  Write(Path(kKeyFile), made.key);
  Write(Path(kCertificateFile), "x");
  EXPECT_EQ(Refused(), "'" + folder_ + "': the certificate is damaged, or is none");
  Write(Path(kCertificateFile), made.certificate);
  EXPECT_TRUE(Keep().ok());
  EXPECT_EQ(Keep(kNow + 11 * kYear).status().message(),
            "'" + folder_ + "': the certificate has expired");
  fs::remove(Path(kKeyFile));
  EXPECT_EQ(Refused(), "'" + Path(kCertificateFile) + "' has lost its private key: there is no '" +
                           Path(kKeyFile) + "'");
  fs::remove(Path(kCertificateFile));
  Write(Path(kKeyFile), "half a key");
  chmod(Path(kKeyFile).c_str(), 0600);
  EXPECT_EQ(Refused(), "'" + folder_ + "': the private key is damaged, or is none");
  EXPECT_FALSE(fs::exists(Path(kCertificateFile)));
  fs::remove(Path(kKeyFile));
  Write(Path(kKeyFile), std::string(100'000, 'x'));
  EXPECT_EQ(Refused(), "'" + Path(kKeyFile) + "' is no file of a certificate or a key");
}

TEST_F(CertificateFiles, WhatOthersMayReadOrReplaceIsRefused) {
  const Certificate made = Keep().value();
  chmod(Path(kKeyFile).c_str(), 0640);
  EXPECT_EQ(Refused(), "others may read '" + Path(kKeyFile) + "': its mode is 0640");
  chmod(Path(kKeyFile).c_str(), 0600);
  chmod(folder_.c_str(), 0777);
  EXPECT_EQ(Refused(),
            "others may write into '" + folder_ + "', where the gateway's private key is");
  chmod(folder_.c_str(), 0755);
  EXPECT_TRUE(Keep().ok());
  // Links to other places are not followed.
  fs::rename(Path(kKeyFile), above_ + "/elsewhere");
  fs::create_symlink(above_ + "/elsewhere", Path(kKeyFile));
  EXPECT_EQ(Keep().status().sqlstate(), "58030");
  fs::remove(Path(kKeyFile));
  fs::create_directory(Path(kKeyFile));
  EXPECT_EQ(Refused(), "'" + Path(kKeyFile) + "' is no file of a certificate or a key");
}

TEST_F(CertificateFiles, AFolderThatCannotBeIsTold) {
  folder_ = above_ + "/missing/tls";
  EXPECT_EQ(Keep().status().sqlstate(), "58030");
  folder_ = above_ + "/file";
  Write(folder_, "");
  EXPECT_EQ(Keep().status().message(), "'" + folder_ + "' is no folder");
  folder_ = above_ + "/tls";
  EXPECT_EQ(KeepCertificate(folder_, "no host", kNow).status().sqlstate(), "22023");
}

TEST_F(CertificateFiles, GatewaysThatBeginAtOnceHaveOnePair) {
  constexpr size_t kGateways = 8;
  std::vector<std::string> certificates(kGateways);
  {
    std::vector<std::jthread> gateways;
    for (size_t i = 0; i < kGateways; ++i) {
      gateways.emplace_back([this, &certificates, i] {
        const auto kept = Keep();
        certificates[i] = kept.ok() ? kept->certificate + kept->key : kept.status().ToString();
      });
    }
  }
  const Certificate there = Keep().value();
  for (const std::string& each : certificates) {
    EXPECT_EQ(each, there.certificate + there.key);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

}  // namespace
}  // namespace sluice::server::pgwire
