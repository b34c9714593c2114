#pragma once

#include <curl/curl.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "k8s/api_request.h"
#include "k8s/credentials.h"

namespace sluice::k8s {

inline constexpr size_t kMaxAnswerBytes = size_t{64} << 20;
// How often, at least, code that waits for the network checks its clock, which may not be the
// system's.
inline constexpr double kLongestPollSeconds = 0.1;

// curl_multi: several transfers and their reusable connections. One thread.
class TransferSet {
 public:
  explicit TransferSet(uint32_t most_connections);
  TransferSet(const TransferSet&) = delete;
  TransferSet& operator=(const TransferSet&) = delete;
  ~TransferSet();

  CURLM* handle() { return handle_; }
  // Moves bytes, then waits until there are more, `seconds` have passed or Wake is called.
  void Turn(double seconds);
  void Wake() { curl_multi_wakeup(handle_); }  // from any thread
  // The next transfer that has ended; nullptr: none.
  CURL* TakeEnded(CURLcode* how);
  // One of its connections has failed, and others may have: from now on each transfer opens one.
  void Distrust() { trusted_ = false; }
  bool trusted() const { return trusted_; }

 private:
  CURLM* const handle_;
  bool trusted_ = true;
};

// One HTTP exchange. Leaves its set when it is destroyed.
class Transfer {
 public:
  // Called with bytes of a 2xx answer; false aborts the transfer.
  using Sink = std::function<bool(std::string_view)>;

  Transfer(TransferSet& set, const Cluster& cluster, Login login, const ApiRequest& request,
           const std::string& path, Sink sink);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer();

  CURL* handle() const { return handle_; }
  const Login& login() const { return login_; }
  // From the headers, as soon as they have arrived; 0 before.
  int http_code() const;
  // Its request was sent on a connection that others have used, and no answer has begun: the far
  // end may have forgotten the connection.
  bool WaitsOnUsedConnection() const;
  // After it has ended as `how`. `body`: of a 2xx answer, as collected by the sink.
  ApiAnswer Answer(CURLcode how, std::string body);

 private:
  static size_t OnBytes(char* bytes, size_t size, size_t count, void* self);
  void Trust(const Cluster& cluster);

  TransferSet& set_;
  CURL* const handle_;
  const ApiRequest request_;
  const Login login_;
  const Sink sink_;
  curl_slist* headers_ = nullptr;
  curl_slist* connect_to_ = nullptr;
  std::string refusal_;  // the body of a non-2xx answer
  bool too_large_ = false;
};

}  // namespace sluice::k8s
