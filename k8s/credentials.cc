#include "k8s/credentials.h"

#include <fmt/core.h>
#include <openssl/evp.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "k8s/credentials_internal.h"
#include "k8s/seconds_internal.h"

namespace sluice::k8s {
namespace {

// A pod's service account, whose token the kubelet replaces before it expires.
class ServiceAccount final : public LoginSource {
 public:
  explicit ServiceAccount(std::string token_file) : token_file_(std::move(token_file)) {}

  Result<Answer> Read() override {
    Answer answer;
    ASSIGN_OR_RETURN(answer.login.token, ReadTokenFile(token_file_));
    answer.good_for_seconds = kReadAgainSeconds;
    return answer;
  }

 private:
  const std::string token_file_;
};

}  // namespace

Result<std::string> ReadCredentialFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return NotFound(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  std::string text(kMaxCredentialBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (file.bad()) {
    return Unavailable(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  if (text.size() > kMaxCredentialBytes) {
    return InvalidArgument(fmt::format("{} is larger than 1 MiB", path));
  }
  return text;
}

Result<std::string> ReadTokenFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadCredentialFile(path));
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string::npos) {
    return InvalidArgument(fmt::format("{} holds no token", path));
  }
  const std::string token = text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
  if (token.find_first_of("\r\n") != std::string::npos) {
    return InvalidArgument(fmt::format("the token in {} is not one line", path));
  }
  return token;
}

Result<std::string> DecodeBase64(std::string_view text, std::string_view what) {
  std::string compact;
  for (const char character : text) {
    if (character != '\n' && character != '\r' && character != ' ') {
      compact += character;
    }
  }
  std::string bytes(compact.size() / 4 * 3, '\0');
  const int decoded = compact.size() % 4 == 0 && compact.size() <= kMaxCredentialBytes
                          ? EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                            reinterpret_cast<const unsigned char*>(compact.data()),
                                            static_cast<int>(compact.size()))
                          : -1;
  if (decoded < 0) {
    return InvalidArgument(fmt::format("{} is not base64", what));
  }
  const size_t padding = compact.ends_with("==") ? 2 : compact.ends_with("=") ? 1 : 0;
  bytes.resize(static_cast<size_t>(decoded) - padding);
  return bytes;
}

Credentials::Credentials(Cluster cluster, std::string namespace_name,
                         std::unique_ptr<LoginSource> source, const Clock& clock)
    : cluster_(std::move(cluster)),
      namespace_(std::move(namespace_name)),
      clock_(clock),
      source_(std::move(source)) {}

Result<Login> Credentials::Current() {
  const MutexLock lock(mutex_);  // the others wait for the one that is reading
  const TimePoint now = clock_.Now();
  if (login_ && (!read_again_ || now < *read_again_)) {
    return *login_;
  }
  Result<LoginSource::Answer> answer = source_->Read();
  if (!answer.ok()) {
    if (!login_) {
      return answer.status();
    }
    log::Warn("kubernetes credentials kept, reading them again failed: {}",
              answer.status().message());
    read_again_ = now + Seconds(kReadAgainSeconds);
    return *login_;
  }
  login_ = std::move(answer->login);
  login_->reading = ++readings_;
  read_again_.reset();
  if (answer->good_for_seconds) {
    read_again_ = now + Seconds(*answer->good_for_seconds);
  }
  return *login_;
}

void Credentials::Refused(const Login& login) {
  const MutexLock lock(mutex_);
  if (login_ && login_->reading == login.reading) {
    read_again_ = clock_.Now();
  }
}

Result<std::unique_ptr<Credentials>> CredentialsInCluster(const InClusterPlace& place,
                                                          const Clock& clock) {
  if (place.host.empty() || place.port.empty()) {
    return FailedPrecondition("this is not a pod: KUBERNETES_SERVICE_HOST and _PORT are not set")
        .Hint("outside a cluster give a kubeconfig");
  }
  const bool version_6 = place.host.find(':') != std::string::npos;
  Cluster cluster;
  cluster.url = version_6 ? fmt::format("https://[{}]:{}", place.host, place.port)
                          : fmt::format("https://{}:{}", place.host, place.port);
  ASSIGN_OR_RETURN(cluster.ca_pem, ReadCredentialFile(place.folder + "/ca.crt"));
  auto source = std::make_unique<ServiceAccount>(place.folder + "/token");
  // Reports the missing token of a pod without a service account now, not at its first call.
  RETURN_IF_ERROR(source->Read().status());
  const Result<std::string> own = ReadTokenFile(place.folder + "/namespace");
  return std::make_unique<Credentials>(std::move(cluster), own.ok() ? *own : "default",
                                       std::move(source), clock);
}

}  // namespace sluice::k8s
