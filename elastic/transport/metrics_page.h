#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
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

// Serves one page by HTTP/1.1, GET /metrics, to one reader after the other. Thread-safe.
class MetricsPage {
 public:
  // `address`: "HOST:PORT", port 0: any free one. `text` is called for each reader.
  static Result<std::unique_ptr<MetricsPage>> Start(const std::string& address,
                                                    std::function<std::string()> text);
  ~MetricsPage();
  int port() const { return acceptor_->port(); }

 private:
  explicit MetricsPage(std::function<std::string()> text) : text_(std::move(text)) {}
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);
  void Answer(const Socket& reader) const;

  const std::function<std::string()> text_;
  Mutex mutex_;
  std::condition_variable_any came_;
  std::deque<Socket> readers_ GUARDED_BY(mutex_);
  std::jthread thread_;
  std::unique_ptr<Acceptor> acceptor_;  // last: its thread uses the members above
};

}  // namespace sluice::elastic
