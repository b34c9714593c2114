#include "tests/k8s/fake_api_store.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "k8s/json_internal.h"
#include "k8s/object.h"
#include "k8s/quantity/quantity.h"

namespace sluice::k8s {
namespace {

using rapidjson::Document;
using rapidjson::Value;

Document Parse(const std::string& json) {
  return ParseJsonObject(json, "an object of the fake").value();
}

// `a=b,c=d`, the only form that we use.
bool Matches(const std::string& json, const std::string& selector) {
  if (json.empty()) {
    return false;
  }
  const FakeApiStore::Labels labels = ReadObject(json, "an object").value().labels;
  for (size_t begin = 0; begin < selector.size();) {
    const size_t end = std::min(selector.find(',', begin), selector.size());
    const std::string term = selector.substr(begin, end - begin);
    const size_t equals = term.find('=');
    const auto found = labels.find(term.substr(0, equals));
    if (found == labels.end() ||
        (equals != std::string::npos && found->second != term.substr(equals + 1))) {
      return false;
    }
    begin = end + 1;
  }
  return true;
}

// RFC 7386.
void Merge(Value& target, const Value& patch, Document::AllocatorType& memory) {
  if (!patch.IsObject()) {
    target.CopyFrom(patch, memory);
    return;
  }
  if (!target.IsObject()) {
    target.SetObject();
  }
  for (const auto& member : patch.GetObject()) {
    if (member.value.IsNull()) {
      target.RemoveMember(member.name);
      continue;
    }
    if (!target.HasMember(member.name)) {
      target.AddMember(Value(member.name, memory), Value(), memory);
    }
    Merge(target[member.name], member.value, memory);
  }
}

void SetText(Document& document, std::initializer_list<std::string_view> path,
             std::string_view name, std::string_view text) {
  auto& memory = document.GetAllocator();
  SetMember(Within(document, path, memory), name, JsonText(text, memory), memory);
}

void SetGeneration(Document& document, int64_t generation) {
  auto& memory = document.GetAllocator();
  SetMember(Within(document, {"metadata"}, memory), "generation", Value(generation), memory);
}

// Of its spec.
void CountChange(const std::string& before, Document& after) {
  const Document old = Parse(before);
  const Value* const was = FindIn(old, {"spec"});
  const Value* const is = FindIn(after, {"spec"});
  const bool same = was == nullptr || is == nullptr ? was == is : *was == *is;
  SetGeneration(after, NumberIn(old, {"metadata", "generation"}) + (same ? 0 : 1));
}

std::string Frame(std::string_view type, const std::string& object) {
  return fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, object);
}

std::string WithVersion(const std::string& json, int64_t version) {
  Document document = Parse(json);
  SetText(document, {"metadata"}, "resourceVersion", std::to_string(version));
  return ToJson(document);
}

std::string Named(const FakeApiStore::Key& key) {
  return fmt::format("{} \"{}\"", key.resource, key.name);
}

}  // namespace

std::string FakeApiStore::StatusJson(int code, std::string_view reason,
                                     const std::string& message) {
  Document status;
  status.SetObject();
  auto& memory = status.GetAllocator();
  SetText(status, {}, "kind", "Status");
  SetText(status, {}, "apiVersion", "v1");
  SetText(status, {}, "status", "Failure");
  SetText(status, {}, "message", message);
  SetText(status, {}, "reason", reason);
  SetMember(status, "code", Value(code), memory);
  return ToJson(status);
}

std::string FakeApiStore::Put(const Key& key, std::string json) {
  std::string& stored = objects_[key];
  json = WithVersion(json, ++version_);
  events_.push_back({version_, key, stored, json});
  stored = std::move(json);
  return stored;
}

void FakeApiStore::Remove(const Key& key) {
  events_.push_back({++version_, key, objects_[key], ""});
  objects_.erase(key);
}

std::optional<FakeApiStore::Answer> FakeApiStore::OverQuota(const Key& key) const {
  int64_t pods = 0;
  for (const auto& [each, json] : objects_) {
    pods += each.resource == "pods" && each.namespace_name == key.namespace_name ? 1 : 0;
  }
  for (const auto& [each, json] : objects_) {
    if (each.resource == "resourcequotas" && each.namespace_name == key.namespace_name) {
      const Document quota = Parse(json);
      const auto most = ParseQuantity(TextIn(quota, {"status", "hard", "pods"}));
      if (most.ok() && pods >= most->whole()) {
        return Refusal(403, "Forbidden",
                       fmt::format("{} is forbidden: exceeded quota: {}, requested: pods=1",
                                   Named(key), each.name));
      }
    }
  }
  return std::nullopt;
}

// nullopt: there is no such class, for which a real server refuses the pod.
std::optional<int64_t> FakeApiStore::PriorityOf(std::string_view priority_class) const {
  const auto found = objects_.find({"priorityclasses", "", std::string(priority_class)});
  return found == objects_.end() ? std::nullopt
                                 : std::optional(NumberIn(Parse(found->second), {"value"}));
}

FakeApiStore::Answer FakeApiStore::Create(Key key, std::string_view body) {
  Result<Document> read = ParseJsonObject(body, "the body");
  if (!read.ok()) {
    return Refusal(400, "BadRequest", read.status().message());
  }
  Document& document = *read;
  if (key.resource == "selfsubjectaccessreviews") {  // clients that get this far may do everything
    auto& memory = document.GetAllocator();
    SetMember(Within(document, {"status"}, memory), "allowed", Value(true), memory);
    return {201, ToJson(document)};
  }
  key.name = TextIn(document, {"metadata", "name"});
  if (key.name.empty()) {
    return Refusal(422, "Invalid",
                   "metadata.name: Required value: name or generateName is required");
  }
  if (objects_.contains(key)) {
    return Refusal(409, "AlreadyExists", Named(key) + " already exists");
  }
  if (key.resource == "pods") {
    if (ArrayIn(document, {"spec", "containers"}).Empty()) {
      return Refusal(422, "Invalid", "Pod is invalid: spec.containers: Required value");
    }
    if (std::optional<Answer> refused = OverQuota(key)) {
      return *refused;
    }
    SetText(document, {"status"}, "phase", "Pending");
    if (const auto priority = PriorityOf(TextIn(document, {"spec", "priorityClassName"}))) {
      auto& memory = document.GetAllocator();
      SetMember(Within(document, {"spec"}, memory), "priority", Value(*priority), memory);
    }
  }
  if (key.resource == "services" && TextIn(document, {"spec", "clusterIP"}).empty()) {
    // An address that this machine has, and no other test uses.
    SetText(document, {"spec"}, "clusterIP",
            fmt::format("127.{}.{}.{}", 1 + getpid() / 256 % 250, getpid() % 256,
                        1 + addresses_++ % 99));
  }
  SetText(document, {"metadata"}, "namespace", key.namespace_name);
  SetText(document, {"metadata"}, "uid", fmt::format("uid-{}", ++uids_));
  SetText(document, {"metadata"}, "creationTimestamp", "2026-01-01T00:00:00Z");
  SetGeneration(document, 1);
  return {201, Put(key, ToJson(document))};
}

FakeApiStore::Answer FakeApiStore::Get(const Key& key) const {
  const auto found = objects_.find(key);
  return found == objects_.end() ? Refusal(404, "NotFound", Named(key) + " not found")
                                 : Answer{200, found->second};
}

FakeApiStore::Answer FakeApiStore::List(const Key& key, const Query& query) {
  const auto asked = [&query](const std::string& name) {
    const auto found = query.find(name);
    return found == query.end() ? std::string() : found->second;
  };
  if (std::atoll(asked("resourceVersion").c_str()) > version_) {
    return Refusal(504, "Timeout",
                   fmt::format("Too large resource version: {}, current: {}",
                               asked("resourceVersion"), version_));
  }
  // continue: "VERSION/name of the last one". Pages are read from the current state: a real server
  // shows the first page's version, which differs only for changes in between.
  const std::string next = asked("continue");
  if (!next.empty() && std::atoll(next.c_str()) < compacted_) {
    return Refusal(410, "Expired", "The provided continue parameter is too old");
  }
  const std::string after = next.empty() ? "" : next.substr(next.find('/') + 1);
  const int64_t limit = asked("limit").empty() ? INT64_MAX : std::atoll(asked("limit").c_str());
  const int64_t version = next.empty() ? version_ : std::atoll(next.c_str());
  std::string items, last;
  int64_t count = 0;
  bool more = false;
  for (const auto& [each, json] : objects_) {
    if (each.resource != key.resource ||
        (!key.namespace_name.empty() && each.namespace_name != key.namespace_name) ||
        each.name <= after || !Matches(json, asked("labelSelector"))) {
      continue;
    }
    if (count == limit) {
      more = true;
      break;
    }
    items += (count++ == 0 ? "" : ",") + json;
    last = each.name;
  }
  return {200,
          fmt::format(R"({{"kind":"List","apiVersion":"v1","metadata":{{"resourceVersion":"{}")"
                      R"({}}},"items":[{}]}})",
                      version, more ? fmt::format(R"(,"continue":"{}/{}")", version, last) : "",
                      items)};
}

FakeApiStore::Answer FakeApiStore::Update(const Key& key, std::string_view body) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) {
    return Refusal(404, "NotFound", Named(key) + " not found");
  }
  Result<Object> object = ReadObject(std::string(body), "the body");
  if (!object.ok()) {
    return Refusal(400, "BadRequest", object.status().message());
  }
  const Object before = ReadObject(found->second, "an object").value();
  if (!object->resource_version.empty() && object->resource_version != before.resource_version) {
    return Refusal(409, "Conflict",
                   fmt::format("Operation cannot be fulfilled on {}: the object has been modified",
                               Named(key)));
  }
  Document document = Parse(object->json);
  SetText(document, {"metadata"}, "uid", before.uid);
  CountChange(before.json, document);
  return {200, Put(key, ToJson(document))};
}

FakeApiStore::Answer FakeApiStore::Patch(const Key& key, const std::string& subresource,
                                         std::string_view body) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) {
    return Refusal(404, "NotFound", Named(key) + " not found");
  }
  Result<Document> patch = ParseJsonObject(body, "the body");
  if (!patch.ok()) {
    return Refusal(400, "BadRequest", patch.status().message());
  }
  const std::string_view version = TextIn(*patch, {"metadata", "resourceVersion"});
  if (!version.empty() &&
      version != TextIn(Parse(found->second), {"metadata", "resourceVersion"})) {
    return Refusal(409, "Conflict",
                   fmt::format("Operation cannot be fulfilled on {}: the object has been modified",
                               Named(key)));
  }
  // The status is changed through its subresource only, and nothing else through that.
  if (subresource == "status") {
    patch->RemoveMember("spec");
  } else {
    patch->RemoveMember("status");
  }
  Document document = Parse(found->second);
  Merge(document, *patch, document.GetAllocator());
  CountChange(found->second, document);
  return {200, Put(key, ToJson(document))};
}

FakeApiStore::Answer FakeApiStore::Delete(const Key& key, std::string_view body) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) {
    return Refusal(404, "NotFound", Named(key) + " not found");
  }
  Document options;
  options.SetObject();
  if (!body.empty()) {
    options = ParseJsonObject(body, "the body").value();
  }
  Document document = Parse(found->second);
  const std::string_view uid = TextIn(options, {"preconditions", "uid"});
  if (!uid.empty() && uid != TextIn(document, {"metadata", "uid"})) {
    return Refusal(409, "Conflict",
                   fmt::format("Operation cannot be fulfilled on {}: the UID in the precondition "
                               "does not match",
                               Named(key)));
  }
  const bool runs = key.resource == "pods" && !TextIn(document, {"spec", "nodeName"}).empty() &&
                    TextIn(document, {"status", "phase"}) != "Succeeded" &&
                    TextIn(document, {"status", "phase"}) != "Failed";
  const Value* grace = FindIn(options, {"gracePeriodSeconds"});
  if (runs && (grace == nullptr || grace->GetInt() > 0)) {
    auto& memory = document.GetAllocator();
    SetText(document, {"metadata"}, "deletionTimestamp", "2026-01-01T00:01:00Z");
    SetMember(Within(document, {"metadata"}, memory), "deletionGracePeriodSeconds",
              Value(grace == nullptr ? 30 : grace->GetInt()), memory);
    return {200, Put(key, ToJson(document))};
  }
  const std::string last = found->second;
  Remove(key);
  return {200, last};
}

FakeApiStore::Answer FakeApiStore::Bind(const Key& key, std::string_view body) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) {
    return Refusal(404, "NotFound", Named(key) + " not found");
  }
  const Document binding = ParseJsonObject(body, "the body").value();
  Document document = Parse(found->second);
  SetText(document, {"spec"}, "nodeName", TextIn(binding, {"target", "name"}));
  Put(key, ToJson(document));
  return {201,
          R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201})"};
}

std::optional<std::vector<std::string>> FakeApiStore::EventsAfter(const Key& key,
                                                                  const std::string& selector,
                                                                  int64_t& version) const {
  if (version < compacted_) {
    return std::nullopt;
  }
  std::vector<std::string> frames;
  for (const Event& event : events_) {
    if (event.version <= version || event.key.resource != key.resource ||
        (!key.namespace_name.empty() && event.key.namespace_name != key.namespace_name)) {
      continue;
    }
    version = event.version;
    const bool before = Matches(event.before, selector), after = Matches(event.after, selector);
    if (after) {
      frames.push_back(Frame(before ? "MODIFIED" : "ADDED", event.after));
    } else if (before) {
      frames.push_back(Frame("DELETED", WithVersion(event.before, event.version)));
    }
  }
  return frames;
}

std::string FakeApiStore::Bookmark() const {
  return Frame("BOOKMARK", fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}}}})", version_));
}

}  // namespace sluice::k8s
