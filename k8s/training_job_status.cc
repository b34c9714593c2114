#include "k8s/training_job_status.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "k8s/json_internal.h"

namespace sluice::k8s {
namespace {

using rapidjson::Document;
using rapidjson::Value;
using Memory = Document::AllocatorType;

std::optional<int64_t> IntegerIn(const Value& value, std::initializer_list<std::string_view> path) {
  const Value* found = FindIn(value, path);
  return found != nullptr && found->IsInt64() ? std::optional<int64_t>(found->GetInt64())
                                              : std::nullopt;
}

std::optional<double> RealIn(const Value& value, std::initializer_list<std::string_view> path) {
  const Value* found = FindIn(value, path);
  return found != nullptr && found->IsNumber() ? std::optional<double>(found->GetDouble())
                                               : std::nullopt;
}

uint32_t CountIn(const Value& value, std::initializer_list<std::string_view> path) {
  const Value* found = FindIn(value, path);
  return found != nullptr && found->IsUint() ? found->GetUint() : 0;
}

std::vector<std::string> TextsIn(const Value& value, std::initializer_list<std::string_view> path) {
  std::vector<std::string> texts;
  for (const Value& each : ArrayIn(value, path)) {
    if (each.IsString()) {
      texts.emplace_back(each.GetString());
    }
  }
  return texts;
}

// Sets `name` to `after` if that differs from `before`.
class Patch {
 public:
  Patch() { document_.SetObject(); }
  Memory& memory() { return document_.GetAllocator(); }
  bool changed() const { return changed_; }
  std::string Json() const { return ToJson(document_); }

  void Set(std::initializer_list<std::string_view> path, Value value) {
    Value* at = &Within(document_, {"status"}, memory());
    for (const auto* name = path.begin(); name + 1 != path.end(); ++name) {
      at = &Within(*at, {*name}, memory());
    }
    SetMember(*at, *(path.end() - 1), std::move(value), memory());
    changed_ = true;
  }
  void Text(std::initializer_list<std::string_view> path, const std::string& before,
            const std::string& after) {
    if (before != after) {
      Set(path, after.empty() ? Value() : JsonText(after, memory()));
    }
  }
  void AtVersion(std::string_view version) {
    if (!version.empty()) {
      SetMember(Within(document_, {"metadata"}, memory()), "resourceVersion",
                JsonText(version, memory()), memory());
    }
  }
  template <typename Number>
  void Count(std::initializer_list<std::string_view> path, Number before, Number after) {
    if (before != after) {
      Set(path, Value(after));
    }
  }
  void Integer(std::initializer_list<std::string_view> path, std::optional<int64_t> before,
               std::optional<int64_t> after) {
    if (before != after) {
      Set(path, after ? Value(*after) : Value());
    }
  }
  void Real(std::initializer_list<std::string_view> path, std::optional<double> before,
            std::optional<double> after) {
    if (after && !std::isfinite(*after)) {
      after.reset();  // JSON cannot express it
    }
    if (before != after) {
      Set(path, after ? Value(*after) : Value());
    }
  }

 private:
  Document document_;
  bool changed_ = false;
};

// Empty fields are omitted: an API server compiled with Go 1.19 takes "" for null.
void SetStatusText(Value& object, std::string_view name, const std::string& text, Memory& memory) {
  if (!text.empty()) {
    SetMember(object, name, JsonText(text, memory), memory);
  }
}

Value ConditionsJson(const std::vector<Condition>& conditions, Memory& memory) {
  Value list(rapidjson::kArrayType);
  for (const Condition& condition : conditions) {
    Value object(rapidjson::kObjectType);
    SetStatusText(object, "type", condition.type, memory);
    SetStatusText(object, "status", condition.status, memory);
    SetStatusText(object, "reason", condition.reason, memory);
    SetStatusText(object, "message", condition.message, memory);
    SetStatusText(object, "lastTransitionTime", condition.since, memory);
    if (condition.observed_generation != 0) {
      SetMember(object, "observedGeneration", Value(condition.observed_generation), memory);
    }
    list.PushBack(object, memory);
  }
  return list;
}

Value ScalingsJson(const std::vector<Scaling>& scalings, Memory& memory) {
  Value list(rapidjson::kArrayType);
  for (const Scaling& scaling : scalings) {
    Value object(rapidjson::kObjectType);
    SetStatusText(object, "time", scaling.time, memory);
    SetMember(object, "from", Value(scaling.from), memory);
    SetMember(object, "to", Value(scaling.to), memory);
    SetStatusText(object, "reason", scaling.reason, memory);
    list.PushBack(object, memory);
  }
  return list;
}

Value TextsJson(const std::vector<std::string>& texts, Memory& memory) {
  Value list(rapidjson::kArrayType);
  for (const std::string& text : texts) {
    list.PushBack(JsonText(text, memory), memory);
  }
  return list;
}

}  // namespace

Result<TrainingJobStatus> ParseTrainingJobStatus(std::string_view json) {
  ASSIGN_OR_RETURN(const Document document, ParseJsonObject(json, "the TrainingJob"));
  static const Value none(rapidjson::kObjectType);
  const Value* const found = FindIn(document, {"status"});
  const Value& from = found == nullptr ? none : *found;
  TrainingJobStatus status;
  status.observed_generation = NumberIn(from, {"observedGeneration"});
  for (const Value& each : ArrayIn(from, {"conditions"})) {
    status.conditions.push_back(
        {std::string(TextIn(each, {"type"})), std::string(TextIn(each, {"status"})),
         std::string(TextIn(each, {"reason"})), std::string(TextIn(each, {"message"})),
         std::string(TextIn(each, {"lastTransitionTime"})),
         NumberIn(each, {"observedGeneration"})});
  }
  status.job = IntegerIn(from, {"job"});
  if (const Value* begun = FindIn(from, {"begun"}); begun != nullptr && begun->IsObject()) {
    status.begun = BegunSpec{std::string(TextIn(*begun, {"statementSha256"})),
                             std::string(TextIn(*begun, {"secretName"})),
                             std::string(TextIn(*begun, {"key"}))};
  }
  status.model = TextIn(from, {"model"});
  status.version = IntegerIn(from, {"version"});
  status.rows = IntegerIn(from, {"rows"});
  status.sha256 = TextIn(from, {"sha256"});
  status.seconds = IntegerIn(from, {"seconds"});
  status.master_number =
      static_cast<uint64_t>(std::max<int64_t>(0, NumberIn(from, {"master", "number"})));
  status.master_pod = TextIn(from, {"master", "pod"});
  if (const Value* grant = FindIn(from, {"grant"}); grant != nullptr && grant->IsObject()) {
    status.grant =
        Grant{CountIn(*grant, {"workers"}), TextsIn(*grant, {"giveUp"}), TextsIn(*grant, {"nodes"}),
              std::string(TextIn(*grant, {"reason"})), TrueIn(*grant, {"suspend"})};
  }
  status.running_workers = CountIn(from, {"workers", "running"});
  status.granted_workers = CountIn(from, {"workers", "granted"});
  status.most_workers = CountIn(from, {"workers", "most"});
  status.waiting_workers = CountIn(from, {"workers", "waiting"});
  status.waiting_for = TextIn(from, {"workers", "waitingFor"});
  status.running_servers = CountIn(from, {"servers", "running"});
  status.percent = IntegerIn(from, {"progress"});
  status.seconds_left = IntegerIn(from, {"secondsLeft"});
  status.loss = RealIn(from, {"loss"});
  status.rows_per_second = RealIn(from, {"rowsPerSecond"});
  for (const Value& each : ArrayIn(from, {"scalings"})) {
    status.scalings.push_back({std::string(TextIn(each, {"time"})), CountIn(each, {"from"}),
                               CountIn(each, {"to"}), std::string(TextIn(each, {"reason"}))});
  }
  status.selector = TextIn(from, {"selector"});
  status.can_suspend = TrueIn(from, {"canSuspend"});
  status.started = TextIn(from, {"startTime"});
  status.ended = TextIn(from, {"completionTime"});
  return status;
}

std::optional<std::string> StatusPatch(const TrainingJobStatus& before,
                                       const TrainingJobStatus& after, std::string_view version) {
  Patch patch;
  patch.Count({"observedGeneration"}, before.observed_generation, after.observed_generation);
  if (before.conditions != after.conditions) {
    patch.Set({"conditions"}, ConditionsJson(after.conditions, patch.memory()));
  }
  patch.Integer({"job"}, before.job, after.job);
  const BegunSpec had = before.begun.value_or(BegunSpec()), has = after.begun.value_or(BegunSpec());
  patch.Text({"begun", "statementSha256"}, had.statement_sha256, has.statement_sha256);
  patch.Text({"begun", "secretName"}, had.source_secret, has.source_secret);
  patch.Text({"begun", "key"}, had.source_key, has.source_key);
  patch.Text({"model"}, before.model, after.model);
  patch.Integer({"version"}, before.version, after.version);
  patch.Integer({"rows"}, before.rows, after.rows);
  patch.Text({"sha256"}, before.sha256, after.sha256);
  patch.Integer({"seconds"}, before.seconds, after.seconds);
  patch.Count({"master", "number"}, before.master_number, after.master_number);
  patch.Text({"master", "pod"}, before.master_pod, after.master_pod);
  patch.Count({"workers", "running"}, before.running_workers, after.running_workers);
  patch.Count({"workers", "granted"}, before.granted_workers, after.granted_workers);
  patch.Count({"workers", "most"}, before.most_workers, after.most_workers);
  patch.Count({"workers", "waiting"}, before.waiting_workers, after.waiting_workers);
  patch.Text({"workers", "waitingFor"}, before.waiting_for, after.waiting_for);
  patch.Count({"servers", "running"}, before.running_servers, after.running_servers);
  patch.Integer({"progress"}, before.percent, after.percent);
  patch.Integer({"secondsLeft"}, before.seconds_left, after.seconds_left);
  patch.Real({"loss"}, before.loss, after.loss);
  patch.Real({"rowsPerSecond"}, before.rows_per_second, after.rows_per_second);
  if (before.scalings != after.scalings) {
    patch.Set({"scalings"}, ScalingsJson(after.scalings, patch.memory()));
  }
  patch.Text({"selector"}, before.selector, after.selector);
  if (before.can_suspend != after.can_suspend) {
    patch.Set({"canSuspend"}, Value(after.can_suspend));
  }
  patch.Text({"startTime"}, before.started, after.started);
  patch.Text({"completionTime"}, before.ended, after.ended);
  patch.AtVersion(version);
  return patch.changed() ? std::optional<std::string>(patch.Json()) : std::nullopt;
}

std::string GrantPatch(const std::optional<Grant>& grant) {
  Patch patch;
  if (!grant) {
    patch.Set({"grant"}, Value());
    return patch.Json();
  }
  // Whole lists: a merge patch replaces them.
  patch.Set({"grant", "workers"}, Value(grant->workers));
  patch.Set({"grant", "giveUp"}, TextsJson(grant->give_up, patch.memory()));
  patch.Set({"grant", "nodes"}, TextsJson(grant->nodes, patch.memory()));
  if (!grant->reason.empty()) {
    patch.Set({"grant", "reason"}, JsonText(grant->reason, patch.memory()));
  }
  patch.Set({"grant", "suspend"}, Value(grant->suspend));
  return patch.Json();
}

bool SuspendedByGrant(const TrainingJobStatus& status) {
  return status.grant && status.grant->suspend;
}

void SetCondition(TrainingJobStatus& status, std::string_view type, bool holds,
                  std::string_view reason, std::string_view message, std::string_view now) {
  auto found = std::find_if(status.conditions.begin(), status.conditions.end(),
                            [&](const Condition& each) { return each.type == type; });
  if (found == status.conditions.end()) {
    status.conditions.push_back({std::string(type), "", "", "", "", 0});
    found = status.conditions.end() - 1;
  }
  const std::string_view value = holds ? "True" : "False";
  if (found->status != value) {
    found->status = value;
    found->since = now;
  }
  found->reason = reason;
  found->message = message;
  found->observed_generation = status.observed_generation;
}

bool Holds(const TrainingJobStatus& status, std::string_view type) {
  return std::any_of(
      status.conditions.begin(), status.conditions.end(),
      [&](const Condition& each) { return each.type == type && each.status == "True"; });
}

void AddScaling(TrainingJobStatus& status, Scaling scaling) {
  status.scalings.push_back(std::move(scaling));
  if (status.scalings.size() > kScalingsKept) {
    status.scalings.erase(status.scalings.begin(),
                          status.scalings.end() - static_cast<ptrdiff_t>(kScalingsKept));
  }
}

}  // namespace sluice::k8s
