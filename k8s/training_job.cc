#include "k8s/training_job.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "k8s/json_internal.h"

namespace sluice::k8s {
namespace {

constexpr std::string_view kClaimNote = "training.sluice/begun-by";

using rapidjson::Document;
using rapidjson::Value;
using Memory = Document::AllocatorType;

constexpr int64_t kMaxProcesses = 1024;  // as for engine.max_workers

// The fields of one JSON object, each with its path; errors in them are added to `errors`.
class Fields {
 public:
  Fields(const Value& object, std::string path, Status* errors)
      : object_(object), path_(std::move(path)), errors_(errors) {}

  std::string PathOf(std::string_view name) const { return fmt::format("{}.{}", path_, name); }
  void Wrong(std::string_view name, const std::string& what) const {
    errors_->Add(InvalidArgument(fmt::format("{}: {}", PathOf(name), what)));
  }

  std::string Text(std::string_view name) const {
    const Value* value = Find(name);
    if (value != nullptr && !value->IsString()) {
      Wrong(name, "a text is expected");
    }
    return std::string(TextIn(object_, {name}));
  }
  std::string NeededText(std::string_view name, std::string_view why) const {
    std::string text = Text(name);
    const Value* value = Find(name);
    if (text.empty() && (value == nullptr || value->IsString())) {
      Wrong(name, fmt::format("is missing: {}", why));
    }
    return text;
  }
  std::string OneOf(std::string_view name, const std::vector<std::string_view>& allowed) const {
    std::string text = Text(name);
    if (!text.empty() && std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
      Wrong(name, fmt::format("'{}' is not one of {}", text, fmt::join(allowed, ", ")));
    }
    return text;
  }
  std::optional<int64_t> Integer(std::string_view name, int64_t least, int64_t most) const {
    const Value* value = Find(name);
    if (value == nullptr) {
      return std::nullopt;
    }
    if (!value->IsInt64()) {
      Wrong(name, "a whole number is expected");
      return std::nullopt;
    }
    const int64_t number = value->GetInt64();
    if (number < least || number > most) {
      Wrong(name, most == std::numeric_limits<int64_t>::max()
                      ? fmt::format("{} is less than {}", number, least)
                      : fmt::format("{} does not lie between {} and {}", number, least, most));
      return std::nullopt;
    }
    return number;
  }
  bool Flag(std::string_view name) const {
    const Value* value = Find(name);
    if (value != nullptr && !value->IsBool()) {
      Wrong(name, "true or false is expected");
    }
    return TrueIn(object_, {name});
  }
  // The object of that name; an empty one if there is none.
  Fields Object(std::string_view name) const {
    const Value* value = Find(name);
    if (value != nullptr && !value->IsObject()) {
      Wrong(name, "an object is expected");
    }
    static const Value empty(rapidjson::kObjectType);
    return {value != nullptr && value->IsObject() ? *value : empty, PathOf(name), errors_};
  }
  std::vector<Fields> Objects(std::string_view name) const {
    std::vector<Fields> all;
    const Value* value = Find(name);
    if (value != nullptr && !value->IsArray()) {
      Wrong(name, "a list is expected");
    }
    for (const Value& each : ArrayIn(object_, {name})) {
      const std::string path = fmt::format("{}[{}]", PathOf(name), all.size());
      if (!each.IsObject()) {
        errors_->Add(InvalidArgument(fmt::format("{}: an object is expected", path)));
        continue;
      }
      all.emplace_back(each, path, errors_);
    }
    return all;
  }
  std::map<std::string, Quantity> Quantities(std::string_view name) const {
    const Fields within = Object(name);
    std::map<std::string, Quantity> quantities;
    for (const auto& member : within.object_.GetObject()) {
      const std::string key = member.name.GetString();
      // Kubernetes also accepts `cpu: 2`.
      const std::string text = member.value.IsString()   ? member.value.GetString()
                               : member.value.IsNumber() ? ToJson(member.value)
                                                         : "";
      const Result<Quantity> quantity = ParseQuantity(text);
      if (!quantity.ok()) {
        const Diagnostic& wrong = quantity.status().diagnostics().front();
        Status status = InvalidArgument(fmt::format("{}: {}", within.PathOf(key), wrong.message));
        errors_->Add(wrong.hint.empty() ? status : std::move(status).Hint(wrong.hint));
        continue;
      }
      quantities[key] = *quantity;
    }
    return quantities;
  }

 private:
  const Value* Find(std::string_view name) const {
    const Value* value = FindIn(object_, {name});
    return value == nullptr || value->IsNull() ? nullptr : value;
  }

  const Value& object_;
  const std::string path_;
  Status* const errors_;
};

PodPriority ReadPriority(const Fields& fields) {
  const std::string text = fields.Text("priority");
  if (text.empty()) {
    return {};
  }
  if (text == "high" || text == "low") {
    return {true, text == "high" ? 1.0 : 0.0};
  }
  double share = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), share);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() ||
      !(share >= 0 && share <= 1)) {
    fields.Wrong("priority",
                 fmt::format("'{}' is neither high nor low nor a share such as 0.5", text));
    return {};
  }
  return {true, share};
}

std::optional<uint32_t> Narrow(std::optional<int64_t> number) {
  return number ? std::optional<uint32_t>(static_cast<uint32_t>(*number)) : std::nullopt;
}

ProcessesSpec ReadProcesses(const Fields& fields, int64_t least) {
  ProcessesSpec processes;
  processes.min = Narrow(fields.Integer("min", least, kMaxProcesses));
  processes.max = Narrow(fields.Integer("max", least, kMaxProcesses));
  if (processes.min && processes.max && *processes.min > *processes.max) {
    fields.Wrong("min", fmt::format("{} is more than {}, {}", *processes.min, fields.PathOf("max"),
                                    *processes.max));
  }
  const Fields resources = fields.Object("resources");
  processes.resources.requests = resources.Quantities("requests");
  processes.resources.limits = resources.Quantities("limits");
  for (const auto& [name, request] : processes.resources.requests) {
    const auto limit = processes.resources.limits.find(name);
    if (limit != processes.resources.limits.end() && limit->second < request) {
      resources.Wrong("requests." + name,
                      fmt::format("{} is more than the limit, {}", request.ToString(),
                                  limit->second.ToString()));
    }
  }
  processes.priority = ReadPriority(fields);
  processes.template_name = fields.Text("template");
  return processes;
}

std::vector<PodVolume> ReadVolumes(const Fields& spec) {
  std::vector<PodVolume> volumes;
  for (const Fields& each : spec.Objects("volumes")) {
    PodVolume volume;
    volume.claim = each.NeededText("claimName", "the name of a PersistentVolumeClaim");
    volume.mount_path = each.NeededText("mountPath", "where the pods find it");
    if (!volume.mount_path.empty() && volume.mount_path.front() != '/') {
      each.Wrong("mountPath", fmt::format("'{}' does not begin with /", volume.mount_path));
    }
    volume.sub_path = each.Text("subPath");
    volume.read_only = each.Flag("readOnly");
    volumes.push_back(std::move(volume));
  }
  return volumes;
}

void SetText(Value& object, std::string_view name, const std::string& text, Memory& memory) {
  if (!text.empty()) {
    SetMember(object, name, JsonText(text, memory), memory);
  }
}

void SetQuantities(Value& resources, std::string_view name,
                   const std::map<std::string, Quantity>& quantities, Memory& memory) {
  for (const auto& [resource, quantity] : quantities) {
    SetMember(Within(resources, {name}, memory), resource, JsonText(quantity.ToString(), memory),
              memory);
  }
}

void WriteProcesses(Value& spec, std::string_view name, const ProcessesSpec& processes,
                    Memory& memory) {
  if (processes == ProcessesSpec()) {
    return;
  }
  Value& object = Within(spec, {name}, memory);
  if (processes.min) {
    SetMember(object, "min", Value(*processes.min), memory);
  }
  if (processes.max) {
    SetMember(object, "max", Value(*processes.max), memory);
  }
  if (processes.resources != PodResources()) {
    Value& resources = Within(object, {"resources"}, memory);
    SetQuantities(resources, "requests", processes.resources.requests, memory);
    SetQuantities(resources, "limits", processes.resources.limits, memory);
  }
  if (processes.priority.given) {
    const double share = processes.priority.high_share;
    SetText(object, "priority",
            share >= 1  ? "high"
            : share > 0 ? fmt::format("{}", share)
                        : "low",
            memory);
  }
  SetText(object, "template", processes.template_name, memory);
}

void WriteVolumes(Value& spec, const std::vector<PodVolume>& volumes, Memory& memory) {
  Value list(rapidjson::kArrayType);
  for (const PodVolume& volume : volumes) {
    Value object(rapidjson::kObjectType);
    SetText(object, "claimName", volume.claim, memory);
    SetText(object, "mountPath", volume.mount_path, memory);
    SetText(object, "subPath", volume.sub_path, memory);
    if (volume.read_only) {
      SetMember(object, "readOnly", Value(true), memory);
    }
    list.PushBack(object, memory);
  }
  if (!volumes.empty()) {
    SetMember(spec, "volumes", std::move(list), memory);
  }
}

}  // namespace

TrainingJobSpec HoldingSpec(std::string_view json, const std::optional<TrainingJobSpec>& last,
                            Status* mistakes) {
  const TrainingJobSpec before = last.value_or(TrainingJobSpec());
  const Result<Document> document = ParseJsonObject(json, "the TrainingJob");
  const Value* const object = document.ok() ? FindIn(*document, {"spec"}) : nullptr;
  if (object == nullptr || !object->IsObject()) {
    mistakes->Add(document.ok() ? InvalidArgument("spec: an object is expected")
                                : document.status());
    return before;
  }
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  TrainingJobSpec spec;
  const auto take = [&](auto TrainingJobSpec::*part, const auto& read) {
    Status wrong;
    spec.*part = read(Fields(*object, "spec", &wrong));
    if (!wrong.ok()) {
      spec.*part = before.*part;
      mistakes->Add(std::move(wrong));
    }
  };
  using Spec = TrainingJobSpec;
  take(&Spec::statement, [](const Fields& fields) {
    return fields.NeededText("statement", "SELECT ... TO TRAIN ... INTO a_model");
  });
  take(&Spec::source_secret, [](const Fields& fields) {
    return fields.Object("source").NeededText("secretName",
                                              "the Secret that holds the data source's URL");
  });
  take(&Spec::source_key, [](const Fields& fields) {
    const std::string key = fields.Object("source").Text("key");
    return key.empty() ? Spec().source_key : key;
  });
  take(&Spec::master,
       [](const Fields& fields) { return ReadProcesses(fields.Object("master"), 1); });
  take(&Spec::workers,
       [](const Fields& fields) { return ReadProcesses(fields.Object("workers"), 1); });
  take(&Spec::servers,
       [](const Fields& fields) { return ReadProcesses(fields.Object("servers"), 0); });
  take(&Spec::priority, [](const Fields& fields) {
    return static_cast<int32_t>(fields.Integer("priority", -1000, 1000).value_or(0));
  });
  take(&Spec::template_name, [](const Fields& fields) { return fields.Text("template"); });
  take(&Spec::image, [](const Fields& fields) { return fields.Text("image"); });
  take(&Spec::pull_policy, [](const Fields& fields) {
    return fields.OneOf("imagePullPolicy", {"Always", "IfNotPresent", "Never"});
  });
  take(&Spec::volumes, [](const Fields& fields) { return ReadVolumes(fields); });
  take(&Spec::suspend, [](const Fields& fields) { return fields.Flag("suspend"); });
  take(&Spec::active_deadline_seconds,
       [](const Fields& fields) { return fields.Integer("activeDeadlineSeconds", 1, kNoLimit); });
  take(&Spec::ttl_seconds_after_finished,
       [](const Fields& fields) { return fields.Integer("ttlSecondsAfterFinished", 0, kNoLimit); });
  return spec;
}

Result<TrainingJobSpec> ParseTrainingJobSpec(std::string_view json) {
  Status mistakes;
  TrainingJobSpec spec = HoldingSpec(json, std::nullopt, &mistakes);
  if (!mistakes.ok()) {
    return mistakes;
  }
  return spec;
}

std::string BuildTrainingJob(const std::string& namespace_name, const std::string& name,
                             const TrainingJobSpec& given,
                             const std::map<std::string, std::string>& labels) {
  Document job;
  job.SetObject();
  Memory& memory = job.GetAllocator();
  SetText(job, "apiVersion", kTrainingJobs.ApiVersion(), memory);
  SetText(job, "kind", std::string(kTrainingJobKind), memory);
  SetText(Within(job, {"metadata"}, memory), "name", name, memory);
  SetText(Within(job, {"metadata"}, memory), "namespace", namespace_name, memory);
  for (const auto& [label, value] : labels) {
    SetText(Within(job, {"metadata", "labels"}, memory), label, value, memory);
  }
  Value& spec = Within(job, {"spec"}, memory);
  SetText(spec, "statement", given.statement, memory);
  SetText(Within(spec, {"source"}, memory), "secretName", given.source_secret, memory);
  SetText(Within(spec, {"source"}, memory), "key", given.source_key, memory);
  WriteProcesses(spec, "master", given.master, memory);
  WriteProcesses(spec, "workers", given.workers, memory);
  WriteProcesses(spec, "servers", given.servers, memory);
  if (given.priority != 0) {
    SetMember(spec, "priority", Value(given.priority), memory);
  }
  SetText(spec, "template", given.template_name, memory);
  SetText(spec, "image", given.image, memory);
  SetText(spec, "imagePullPolicy", given.pull_policy, memory);
  WriteVolumes(spec, given.volumes, memory);
  if (given.suspend) {
    SetMember(spec, "suspend", Value(true), memory);
  }
  if (given.active_deadline_seconds) {
    SetMember(spec, "activeDeadlineSeconds", Value(*given.active_deadline_seconds), memory);
  }
  if (given.ttl_seconds_after_finished) {
    SetMember(spec, "ttlSecondsAfterFinished", Value(*given.ttl_seconds_after_finished), memory);
  }
  return ToJson(job);
}

Owner TrainingJobOwner(const std::string& name, const std::string& uid) {
  return {kTrainingJobs.ApiVersion(), std::string(kTrainingJobKind), name, uid};
}

int64_t GenerationOf(const Object& training_job) {
  const Result<Document> json = ParseJsonObject(training_job.json, "a TrainingJob");
  return json.ok() ? NumberIn(*json, {"metadata", "generation"}) : 0;
}

std::string ClaimOf(const Object& training_job) {
  const Result<Document> json = ParseJsonObject(training_job.json, "a TrainingJob");
  return json.ok() ? std::string(TextIn(*json, {"metadata", "annotations", kClaimNote})) : "";
}

Result<std::string> Claim(const Object& training_job, std::string_view before,
                          std::string_view holder) {
  ASSIGN_OR_RETURN(Document json, ParseJsonObject(training_job.json, "a TrainingJob"));
  if (TextIn(json, {"metadata", "annotations", kClaimNote}) != before) {
    return training_job.json;
  }
  Memory& memory = json.GetAllocator();
  SetMember(Within(json, {"metadata", "annotations"}, memory), kClaimNote, JsonText(holder, memory),
            memory);
  return ToJson(json);
}

}  // namespace sluice::k8s
