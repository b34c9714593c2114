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

EventRecorder::EventRecorder(ApiClient& client, By by)
    : client_(client),
      by_(std::move(by)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

EventRecorder::~EventRecorder() {
  thread_.request_stop();
}

void EventRecorder::Record(const Owner& object, bool warning, const std::string& reason,
                           const std::string& message) {
  RecordIn(by_.namespace_name, object, warning, reason, message);
}

void EventRecorder::RecordIn(const std::string& namespace_name, const Owner& object, bool warning,
                             const std::string& reason, const std::string& message) {
  const int64_t now = WallMicros();
  const MutexLock lock(mutex_);
  Series& series = series_[{object.uid, reason}];
  series.namespace_name = namespace_name;
  series.object = object;
  series.warning = warning;
  series.message = message.substr(0, kLongestMessage);
  series.first = series.count == 0 ? now : series.first;
  series.last = now;
  ++series.count;
  dirty_ = true;
  changed_.notify_all();
}

void EventRecorder::Forget(const std::string& uid) {
  const MutexLock lock(mutex_);
  std::erase_if(series_, [&uid](const auto& each) { return each.first.first == uid; });
}

void EventRecorder::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      MutexLock lock(mutex_);
      changed_.wait(lock.native(), stop, [this]() REQUIRES(mutex_) { return dirty_; });
    }
    Write();
    MutexLock lock(mutex_);
    changed_.wait_for(lock.native(), stop, kEventsEvery, [] { return false; });
  }
  Write();
}

std::string EventRecorder::NameOf(const std::string& reason, const Series& series) const {
  return fmt::format("{}.{}.{}", series.object.name, by_.instance, LowerAscii(reason));
}

std::string EventRecorder::EventJson(const std::string& reason, const Series& series) const {
  Document event;
  event.SetObject();
  auto& memory = event.GetAllocator();
  const auto text = [&memory](std::string_view value) { return JsonText(value, memory); };
  SetMember(event, "apiVersion", text("v1"), memory);
  SetMember(event, "kind", text("Event"), memory);
  SetMember(Within(event, {"metadata"}, memory), "name", text(NameOf(reason, series)), memory);
  SetMember(Within(event, {"metadata"}, memory), "namespace", text(series.namespace_name), memory);
  Value& object = Within(event, {"involvedObject"}, memory);
  SetMember(object, "apiVersion", text(series.object.api_version), memory);
  SetMember(object, "kind", text(series.object.kind), memory);
  SetMember(object, "name", text(series.object.name), memory);
  SetMember(object, "namespace", text(series.namespace_name), memory);
  SetMember(object, "uid", text(series.object.uid), memory);
  SetMember(Within(event, {"source"}, memory), "component", text(by_.component), memory);
  SetMember(event, "type", text(series.warning ? "Warning" : "Normal"), memory);
  SetMember(event, "reason", text(reason), memory);
  SetMember(event, "firstTimestamp", text(Rfc3339(series.first)), memory);
  SetTimes(event, series.count, series.last, series.message, memory);
  return ToJson(event);
}

void EventRecorder::Write() {
  std::map<Name, Series> due;
  {
    const MutexLock lock(mutex_);
    dirty_ = false;
    for (auto& [name, series] : series_) {
      if (series.count != series.written) {
        series.written = series.count;
        due[name] = series;
      }
    }
  }
  for (const auto& [name, series] : due) {
    const std::string& reason = name.second;
    ObjectAnswer told;
    if (!series.made) {
      told = CreateAll(client_, {{kEvents, series.namespace_name, EventJson(reason, series)}}, {})
                 .at(0);
    }
    if (series.made || told.fault == Fault::kAlreadyExists) {
      Document patch;
      patch.SetObject();
      SetTimes(patch, series.count, series.last, series.message, patch.GetAllocator());
      told = PatchObject(client_, kEvents, series.namespace_name, NameOf(reason, series), "",
                         ToJson(patch), {});
    }
    if (!told.ok()) {
      log::Debug("kubernetes event {} is lost: {}", reason, told.status.message());
    }
    const MutexLock lock(mutex_);
    const auto written = series_.find(name);
    if (written != series_.end()) {
      written->second.made = told.ok();
    }
  }
}

}  // namespace sluice::k8s
