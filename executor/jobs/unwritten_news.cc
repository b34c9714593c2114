#include "executor/jobs/unwritten_news.h"

#include <algorithm>

namespace sluice::executor {
namespace {

constexpr size_t kLastNotices = 20;

}  // namespace

void UnwrittenNews::Add(catalog::JobEvent event) {
  if (events_.size() < kMax) {
    events_.push_back(std::move(event));
  }
}

void UnwrittenNews::Add(catalog::JobMetric metric) {
  if (metrics_.size() < kMax) {
    metrics_.push_back(std::move(metric));
  }
}

void UnwrittenNews::AddPoint(const Metrics& point) {
  if (metrics_.size() < kMax) {
    AddAtTheEnd(point);
  }
}

void UnwrittenNews::AddAtTheEnd(const Metrics& metrics) {
  metrics_.insert(metrics_.end(), metrics.begin(), metrics.end());
}

std::pair<UnwrittenNews::Events, UnwrittenNews::Metrics> UnwrittenNews::Take() {
  return {std::exchange(events_, {}), std::exchange(metrics_, {})};
}

void UnwrittenNews::PutBack(const Events& events, const Metrics& metrics) {
  events_.insert(events_.begin(), events.begin(), events.end());
  metrics_.insert(metrics_.begin(), metrics.begin(), metrics.end());
  events_.resize(std::min(events_.size(), kMax));
  metrics_.resize(std::min(metrics_.size(), kMax));
}

void UnwrittenNews::AddNotice(const std::string& text, int64_t now_micros) {
  if (notices_.size() >= kMax) {
    return;
  }
  last_notice_ = std::max(last_notice_ + 1, now_micros);
  notices_[last_notice_] = text;
  last_notices_[last_notice_] = text;
  if (last_notices_.size() > kLastNotices) {
    last_notices_.erase(last_notices_.begin());
  }
}

}  // namespace sluice::executor
