#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/histogram.h"
#include "base/mutex.h"
#include "base/status.h"
#include "elastic/transport/acceptor.h"
#include "elastic/transport/socket.h"

namespace sluice::elastic {

// Metrics in Prometheus' text format. Not thread-safe.
class MetricsText {
 public:
  enum class Kind { kCounter, kGauge };
  using Labels = std::vector<std::pair<std::string_view, std::string>>;
  // Metrics with the same name must be consecutive; the first one describes them.
  void Add(std::string_view name, Kind kind, std::string_view help, const Labels& labels,
           double value);
  void Add(std::string_view name, std::string_view help, const Histogram& histogram);
  const std::string& text() const { return text_; }

 private:
  std::string text_, last_name_;
};

// Serves three pages by HTTP/1.1: GET /metrics; GET /healthz, 200 as
// long as this process answers; GET /readyz, 200 or 503. A reader that asks slowly, or reads
// slowly, holds up no other, and many of one address those of other addresses no longer than a few.
// Thread-safe.
class MetricsPage {
 public:
  // Called for each reader.
  struct Pages {
    std::function<std::string()> metrics;
    std::function<Status()> ready = {};  // an error: the process cannot serve now; absent: always
  };
  // `address`: "HOST:PORT", port 0: any free one.
  static Result<std::unique_ptr<MetricsPage>> Start(const std::string& address, Pages pages);
  ~MetricsPage();
  int port() const { return acceptor_->port(); }

 private:
  explicit MetricsPage(Pages pages);
  struct Reader {
    Socket socket;
    std::string network;  // NetworkOf its address
    std::chrono::steady_clock::time_point until;
    std::string request = {};
    std::string response = {};  // "": the request is not complete yet
    size_t sent = 0;
  };

  void Run(const std::stop_token& stop) EXCLUDES(mutex_);
  void TakeThoseWhoCame(std::list<Reader>& readers) EXCLUDES(mutex_);
  bool Serve(Reader& reader) const;
  void Wake() const;

  const Pages pages_;
  const Socket wake_;  // an eventfd: somebody came, or the thread ends
  Mutex mutex_;
  std::vector<Socket> came_ GUARDED_BY(mutex_);
  std::jthread thread_;
  std::unique_ptr<Acceptor> acceptor_;  // last: its thread uses the members above
};

}  // namespace sluice::elastic
