#include "k8s/event_recorder.h"

#include <fmt/core.h>

#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/letter_case.h"
#include "base/log.h"
#include "k8s/api_verbs.h"
#include "k8s/json_internal.h"
#include "k8s/rfc3339.h"

namespace sluice::k8s {
namespace {

using rapidjson::Document;
using rapidjson::Value;

constexpr auto kEventsEvery = std::chrono::seconds(1);
constexpr size_t kLongestMessage = 1'000;  // Kubernetes takes 1024

void SetTimes(Value& event, int64_t count, int64_t last, const std::string& message,
              Document::AllocatorType& memory) {
  SetMember(event, "count", Value(count), memory);
  SetMember(event, "lastTimestamp", JsonText(Rfc3339(last), memory), memory);
  SetMember(event, "message", JsonText(message, memory), memory);
}

}  // namespace

EventRecorder::EventRecorder(ApiClient& client, About about)
    : client_(client),
      about_(std::move(about)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

EventRecorder::~EventRecorder() {
  thread_.request_stop();
}

void EventRecorder::Record(bool warning, const std::string& reason, const std::string& message) {
  const int64_t now = WallMicros();
  const MutexLock lock(mutex_);
  Series& series = series_[reason];
  series.warning = warning;
  series.message = message.substr(0, kLongestMessage);
  series.first = series.count == 0 ? now : series.first;
  series.last = now;
  ++series.count;
  dirty_ = true;
  changed_.notify_all();
}

void EventRecorder::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      MutexLock lock(mutex_);
      changed_.wait(lock.native(), stop, [this]() NO_THREAD_SAFETY_ANALYSIS { return dirty_; });
    }
    Write();
    MutexLock lock(mutex_);
    changed_.wait_for(lock.native(), stop, kEventsEvery, [] { return false; });
  }
  Write();
}

std::string EventRecorder::NameOf(const std::string& reason) const {
  return fmt::format("{}.{}.{}", about_.object.name, about_.instance, LowerAscii(reason));
}

std::string EventRecorder::EventJson(const std::string& reason, const Series& series) const {
  Document event;
  event.SetObject();
  auto& memory = event.GetAllocator();
  const auto text = [&memory](std::string_view value) { return JsonText(value, memory); };
  SetMember(event, "apiVersion", text("v1"), memory);
  SetMember(event, "kind", text("Event"), memory);
  SetMember(Within(event, {"metadata"}, memory), "name", text(NameOf(reason)), memory);
  SetMember(Within(event, {"metadata"}, memory), "namespace", text(about_.namespace_name), memory);
  Value& object = Within(event, {"involvedObject"}, memory);
  SetMember(object, "apiVersion", text(about_.object.api_version), memory);
  SetMember(object, "kind", text(about_.object.kind), memory);
  SetMember(object, "name", text(about_.object.name), memory);
  SetMember(object, "namespace", text(about_.namespace_name), memory);
  SetMember(object, "uid", text(about_.object.uid), memory);
  SetMember(Within(event, {"source"}, memory), "component", text(about_.component), memory);
  SetMember(event, "type", text(series.warning ? "Warning" : "Normal"), memory);
  SetMember(event, "reason", text(reason), memory);
  SetMember(event, "firstTimestamp", text(Rfc3339(series.first)), memory);
  SetTimes(event, series.count, series.last, series.message, memory);
  return ToJson(event);
}

void EventRecorder::Write() {
  std::map<std::string, Series> due;
  {
    const MutexLock lock(mutex_);
    dirty_ = false;
    for (auto& [reason, series] : series_) {
      if (series.count != series.written) {
        series.written = series.count;
        due[reason] = series;
      }
    }
  }
  for (const auto& [reason, series] : due) {
    ObjectAnswer told;
    if (!series.made) {
      told = CreateAll(client_, {{kEvents, about_.namespace_name, EventJson(reason, series)}}, {})
                 .at(0);
    }
    if (series.made || told.fault == Fault::kAlreadyExists) {
      Document patch;
      patch.SetObject();
      SetTimes(patch, series.count, series.last, series.message, patch.GetAllocator());
      told = PatchObject(client_, kEvents, about_.namespace_name, NameOf(reason), "", ToJson(patch),
                         {});
    }
    if (!told.ok()) {
      log::Debug("kubernetes event {} is lost: {}", reason, told.status.message());
    }
    const MutexLock lock(mutex_);
    series_[reason].made = told.ok();
  }
}

}  // namespace sluice::k8s
