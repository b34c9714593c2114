#include "k8s/lease.h"

#include <fmt/core.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/sleep.h"
#include "k8s/api_verbs.h"
#include "k8s/json_internal.h"
#include "k8s/rfc3339.h"
#include "k8s/seconds_internal.h"

namespace sluice::k8s {
namespace {

// For people who look at the object; nothing here depends on it.
std::string MicroTime() {
  const int64_t now = WallMicros();
  std::string time = Rfc3339(now);
  return time.replace(time.size() - 1, 1, fmt::format(".{:06}Z", now % 1'000'000));
}

// The Lease with a new holder, or renewed; other fields stay.
Result<std::string> Renewed(const Object* lease, const LeaseClaim::Place& place,
                            const std::string& holder) {
  rapidjson::Document document;
  document.SetObject();
  if (lease != nullptr) {
    ASSIGN_OR_RETURN(document, ParseJsonObject(lease->json, "the lease"));
  }
  auto& memory = document.GetAllocator();
  SetMember(document, "apiVersion", JsonText(kLeases.ApiVersion(), memory), memory);
  SetMember(document, "kind", JsonText("Lease", memory), memory);
  rapidjson::Value& metadata = Within(document, {"metadata"}, memory);
  SetMember(metadata, "name", JsonText(place.name, memory), memory);
  if (lease == nullptr && !place.owner.uid.empty()) {
    rapidjson::Value owner(rapidjson::kObjectType);
    SetMember(owner, "apiVersion", JsonText(place.owner.api_version, memory), memory);
    SetMember(owner, "kind", JsonText(place.owner.kind, memory), memory);
    SetMember(owner, "name", JsonText(place.owner.name, memory), memory);
    SetMember(owner, "uid", JsonText(place.owner.uid, memory), memory);
    rapidjson::Value owners(rapidjson::kArrayType);
    owners.PushBack(owner, memory);
    SetMember(metadata, "ownerReferences", std::move(owners), memory);
  }
  rapidjson::Value& spec = Within(document, {"spec"}, memory);
  const std::string now = MicroTime();
  if (TextIn(spec, {"holderIdentity"}) != holder) {
    const int64_t transitions = NumberIn(spec, {"leaseTransitions"});
    SetMember(spec, "holderIdentity", JsonText(holder, memory), memory);
    SetMember(spec, "acquireTime", JsonText(now, memory), memory);
    SetMember(spec, "leaseTransitions",
              rapidjson::Value(transitions + (holder.empty() || lease == nullptr ? 0 : 1)), memory);
  }
  SetMember(spec, "leaseDurationSeconds", rapidjson::Value(place.duration_seconds), memory);
  SetMember(spec, "renewTime", JsonText(now, memory), memory);
  return ToJson(document);
}

}  // namespace

LeaseClaim::LeaseClaim(ApiClient& client, Place place)
    : client_(client), place_(std::move(place)) {}

bool LeaseClaim::Held() const {
  return held_until_ && client_.clock().Now() < *held_until_;
}

Result<LeaseClaim::View> LeaseClaim::Observe(const std::stop_token& stop,
                                             std::optional<Object>& lease) {
  ObjectAnswer answer = GetObject(client_, kLeases, place_.namespace_name, place_.name, stop);
  if (answer.fault == Fault::kNotFound) {
    seen_version_.clear();
    return View();
  }
  RETURN_IF_ERROR(answer.status);
  ASSIGN_OR_RETURN(const rapidjson::Document document,
                   ParseJsonObject(answer.object.json, "the lease"));
  const TimePoint now = client_.clock().Now();
  if (answer.object.resource_version != seen_version_) {
    seen_version_ = answer.object.resource_version;
    seen_change_ = now;
  }
  View view;
  view.holder = TextIn(document, {"spec", "holderIdentity"});
  view.ours = view.holder == place_.holder;
  const int64_t duration =
      std::clamp<int64_t>(NumberIn(document, {"spec", "leaseDurationSeconds"}), 1, int64_t{3600});
  view.expired =
      !view.holder.empty() && now - seen_change_ >= Seconds(static_cast<double>(duration));
  lease = std::move(answer.object);
  return view;
}

Result<LeaseClaim::View> LeaseClaim::Write(const Object* lease, const std::string& holder,
                                           const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const std::string json, Renewed(lease, place_, holder));
  ApiRequest request;
  request.verb = lease == nullptr ? Verb::kCreate : Verb::kUpdate;
  request.resource = kLeases;
  request.namespace_name = place_.namespace_name;
  request.name = lease == nullptr ? "" : place_.name;
  request.body = json;
  const TimePoint before = client_.clock().Now();
  const ApiAnswer answer = client_.Call(request, stop);
  View view;
  if (answer.fault == Fault::kConflict || answer.fault == Fault::kAlreadyExists ||
      answer.fault == Fault::kNotFound) {
    // Another process was faster; or this one was, and has asked again because the answer was late.
    std::optional<Object> there;
    Result<View> now = Observe(stop, there);
    if (!now.ok() || !now->ours) {
      held_until_.reset();
    }
    return now;
  }
  RETURN_IF_ERROR(answer.status);
  view.holder = holder;
  view.ours = holder == place_.holder;
  held_until_.reset();
  if (view.ours) {
    held_until_ = before + Seconds(place_.duration_seconds);
  }
  return view;
}

Result<LeaseClaim::View> LeaseClaim::Look(const std::stop_token& stop) {
  std::optional<Object> lease;
  return Observe(stop, lease);
}

Result<LeaseClaim::View> LeaseClaim::Round(const std::stop_token& stop) {
  std::optional<Object> lease;
  ASSIGN_OR_RETURN(View view, Observe(stop, lease));
  if (!view.ours && !view.holder.empty() && !view.expired) {
    held_until_.reset();
    return view;
  }
  return Write(lease ? &*lease : nullptr, place_.holder, stop);
}

Status LeaseClaim::Release(const std::stop_token& stop) {
  std::optional<Object> lease;
  ASSIGN_OR_RETURN(const View view, Observe(stop, lease));
  if (view.ours) {
    RETURN_IF_ERROR(Write(&*lease, "", stop).status());
  }
  held_until_.reset();
  return OkStatus();
}

Status LeaseClaim::ReleaseWithin(std::chrono::milliseconds time) {
  std::stop_source late;
  const std::jthread timer([&late, time](const std::stop_token& stop) {
    if (SleepFor(time, stop)) {
      late.request_stop();
    }
  });
  return Release(late.get_token());
}

}  // namespace sluice::k8s
