#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "k8s/api_request.h"
#include "k8s/credentials.h"

namespace sluice::k8s {

class TransferSet;

struct ApiOptions {
  double deadline_seconds = 30;    // for a call including its retries
  uint64_t seed = 1;               // of the waits between attempts
  uint32_t most_connections = 16;  // of one CallAll
};

// Calls to an API server. A temporary failure (429, with its Retry-After; 5xx; a broken connection)
// is retried until the deadline, for creations too: see CreateAll in api_verbs.h for the
// consequences. A connection on which an answer is overdue is given up, and every idle one. A
// refused token is reread once. Answers are at most 64 MiB. Redirects and the environment's proxies
// are not followed. Thread-safe; a call blocks only its own thread.
class ApiClient {
 public:
  // `clock` determines deadlines and waits.
  ApiClient(Credentials& credentials, ApiOptions options, const Clock& clock);
  ~ApiClient();

  ApiAnswer Call(const ApiRequest& request, const std::stop_token& stop);
  // All of them at once, over some connections. The answers are in the order of the requests.
  std::vector<ApiAnswer> CallAll(const std::vector<ApiRequest>& requests,
                                 const std::stop_token& stop);

  // How many calls have ended with each outcome, by verb and outcome ("ok", or FaultName), not
  // counting retries.
  using Calls = std::map<std::pair<std::string, std::string>, uint64_t>;
  Calls calls() const EXCLUDES(mutex_);

  Credentials& credentials() { return credentials_; }
  const Clock& clock() const { return clock_; }

 private:
  class Connections;
  std::vector<ApiAnswer> Converse(TransferSet& set, const std::vector<ApiRequest>& requests,
                                  const std::stop_token& stop);

  Credentials& credentials_;
  const ApiOptions options_;
  const Clock& clock_;
  const std::unique_ptr<Connections> connections_;
  mutable Mutex mutex_;
  Calls calls_ GUARDED_BY(mutex_);
};

}  // namespace sluice::k8s
