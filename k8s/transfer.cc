#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "k8s/transfer_internal.h"

namespace sluice::k8s {
namespace {

// Of a refusal's body: a Status object, or a proxy's page.
constexpr size_t kMaxRefusalBytes = size_t{64} << 10;
constexpr long kConnectMilliseconds = 10'000;
// So that a connection whose far end has vanished is detected.
constexpr long kKeepAliveSeconds = 30;

void StartCurl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  SLUICE_CHECK(started == CURLE_OK, "libcurl cannot be used");
}

curl_blob Blob(const std::string& text) {
  return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
}

// The parts of https://[fd00::1]:6443/path.
struct UrlParts {
  std::string_view scheme, host, port, path;
};
UrlParts PartsOf(std::string_view url) {
  UrlParts parts;
  const size_t colon = url.find("://");
  parts.scheme = url.substr(0, colon);
  url.remove_prefix(colon + 3);
  const size_t end = std::min(url.find('/'), url.size());
  parts.path = url.substr(end);
  url = url.substr(0, end);
  const size_t port = url.rfind(':');
  const bool has_port = port != std::string_view::npos && !url.ends_with(']');
  parts.host = url.substr(0, has_port ? port : url.size());
  parts.port = has_port ? url.substr(port + 1) : (parts.scheme == "http" ? "80" : "443");
  return parts;
}

Fault FaultOf(CURLcode how) {
  switch (how) {
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return Fault::kUntrusted;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_HTTP2:
      return Fault::kDamaged;
    default:
      return Fault::kUnreachable;
  }
}

std::string_view MethodOf(Verb verb) {
  switch (verb) {
    case Verb::kCreate:
      return "POST";
    case Verb::kUpdate:
      return "PUT";
    case Verb::kPatch:
      return "PATCH";
    case Verb::kDelete:
      return "DELETE";
    default:
      return "GET";
  }
}

}  // namespace

TransferSet::TransferSet(uint32_t most_connections) : handle_((StartCurl(), curl_multi_init())) {
  SLUICE_CHECK(handle_ != nullptr, "libcurl has no more memory");
  curl_multi_setopt(handle_, CURLMOPT_MAX_HOST_CONNECTIONS, static_cast<long>(most_connections));
  curl_multi_setopt(handle_, CURLMOPT_MAXCONNECTS, static_cast<long>(most_connections));
  curl_multi_setopt(handle_, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
}

TransferSet::~TransferSet() {
  curl_multi_cleanup(handle_);
}

void TransferSet::Turn(double seconds) {
  int running = 0;
  curl_multi_perform(handle_, &running);
  int left = 0;
  curl_multi_poll(handle_, nullptr, 0,
                  static_cast<int>(std::ceil(std::clamp(seconds, 0.0, kLongestPollSeconds) * 1000)),
                  &left);
  curl_multi_perform(handle_, &running);
}

CURL* TransferSet::TakeEnded(CURLcode* how) {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(handle_, &left)) {
    if (message->msg == CURLMSG_DONE) {
      *how = message->data.result;
      return message->easy_handle;
    }
  }
  return nullptr;
}

Transfer::Transfer(TransferSet& set, const Cluster& cluster, Login login, const ApiRequest& request,
                   const std::string& path, Sink sink)
    : set_(set),
      handle_(curl_easy_init()),
      request_(request),
      login_(std::move(login)),
      sink_(std::move(sink)) {
  SLUICE_CHECK(handle_ != nullptr, "libcurl has no more memory");
  std::string url = cluster.url;
  if (!cluster.server_name.empty()) {  // the certificate's name, at the actual address
    const UrlParts parts = PartsOf(cluster.url);
    const std::string named = fmt::format("{}:{}", cluster.server_name, parts.port);
    connect_to_ = curl_slist_append(connect_to_,
                                    fmt::format("{}:{}:{}", named, parts.host, parts.port).c_str());
    curl_easy_setopt(handle_, CURLOPT_CONNECT_TO, connect_to_);
    url = fmt::format("{}://{}{}", parts.scheme, named, parts.path);
  }
  curl_easy_setopt(handle_, CURLOPT_URL, (url + path).c_str());
  curl_easy_setopt(handle_, CURLOPT_PROTOCOLS_STR, "https,http");
  curl_easy_setopt(handle_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(handle_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle_, CURLOPT_PROXY,
                   cluster.proxy.c_str());  // empty: no proxy from the environment either
  curl_easy_setopt(handle_, CURLOPT_CONNECTTIMEOUT_MS, kConnectMilliseconds);
  curl_easy_setopt(handle_, CURLOPT_FRESH_CONNECT, set.trusted() ? 0L : 1L);
  curl_easy_setopt(handle_, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(handle_, CURLOPT_TCP_KEEPIDLE, kKeepAliveSeconds);
  curl_easy_setopt(handle_, CURLOPT_TCP_KEEPINTVL, kKeepAliveSeconds);
  curl_easy_setopt(handle_, CURLOPT_USERAGENT, "sluice");
  curl_easy_setopt(handle_, CURLOPT_CUSTOMREQUEST, std::string(MethodOf(request_.verb)).c_str());
  curl_easy_setopt(handle_, CURLOPT_WRITEFUNCTION, &Transfer::OnBytes);
  curl_easy_setopt(handle_, CURLOPT_WRITEDATA, this);
  headers_ = curl_slist_append(headers_, "Accept: application/json");
  if (!request_.body.empty()) {
    curl_easy_setopt(handle_, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request_.body.size()));
    curl_easy_setopt(handle_, CURLOPT_POSTFIELDS, request_.body.data());
    headers_ = curl_slist_append(headers_, request_.verb == Verb::kPatch
                                               ? "Content-Type: application/merge-patch+json"
                                               : "Content-Type: application/json");
    headers_ = curl_slist_append(headers_, "Expect:");
  }
  if (!login_.token.empty()) {
    headers_ = curl_slist_append(headers_, ("Authorization: Bearer " + login_.token).c_str());
  }
  curl_easy_setopt(handle_, CURLOPT_HTTPHEADER, headers_);
  Trust(cluster);
  curl_multi_add_handle(set_.handle(), handle_);
}

void Transfer::Trust(const Cluster& cluster) {
  if (cluster.unverified) {
    curl_easy_setopt(handle_, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(handle_, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!cluster.ca_pem.empty()) {
    curl_blob ca = Blob(cluster.ca_pem);
    curl_easy_setopt(handle_, CURLOPT_CAINFO_BLOB, &ca);
  }
  if (!login_.certificate_pem.empty()) {
    curl_blob certificate = Blob(login_.certificate_pem);
    curl_blob key = Blob(login_.key_pem);
    curl_easy_setopt(handle_, CURLOPT_SSLCERTTYPE, "PEM");
    curl_easy_setopt(handle_, CURLOPT_SSLCERT_BLOB, &certificate);
    curl_easy_setopt(handle_, CURLOPT_SSLKEYTYPE, "PEM");
    curl_easy_setopt(handle_, CURLOPT_SSLKEY_BLOB, &key);
  }
}

Transfer::~Transfer() {
  curl_multi_remove_handle(set_.handle(), handle_);
  curl_easy_cleanup(handle_);
  curl_slist_free_all(headers_);
  curl_slist_free_all(connect_to_);
}

int Transfer::http_code() const {
  long code = 0;
  curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &code);
  return static_cast<int>(code);
}

bool Transfer::WaitsOnUsedConnection() const {
  curl_off_t sent_after = 0;
  long connects = 0;
  curl_easy_getinfo(handle_, CURLINFO_PRETRANSFER_TIME_T, &sent_after);
  curl_easy_getinfo(handle_, CURLINFO_NUM_CONNECTS, &connects);
  return sent_after > 0 && connects == 0 && http_code() == 0;
}

size_t Transfer::OnBytes(char* bytes, size_t size, size_t count, void* self) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  const std::string_view text(bytes, size * count);
  const int code = transfer.http_code();
  if (code >= 200 && code < 300) {
    transfer.too_large_ = !transfer.sink_(text);
    return transfer.too_large_ ? 0 : text.size();
  }
  const size_t room = kMaxRefusalBytes - transfer.refusal_.size();
  transfer.refusal_.append(text.substr(0, room));
  return text.size();
}

ApiAnswer Transfer::Answer(CURLcode how, std::string body) {
  if (too_large_) {
    return FailureOf(request_, Fault::kDamaged, "the answer is too large, or none");
  }
  if (how != CURLE_OK) {
    return FailureOf(request_, FaultOf(how), curl_easy_strerror(how));
  }
  curl_off_t retry_after = 0;
  curl_easy_getinfo(handle_, CURLINFO_RETRY_AFTER, &retry_after);
  const int code = http_code();
  return AnswerOf(
      request_, code, code >= 200 && code < 300 ? std::move(body) : refusal_,
      retry_after > 0 ? std::optional<double>(static_cast<double>(retry_after)) : std::nullopt);
}

}  // namespace sluice::k8s
