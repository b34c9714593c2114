#include "tests/k8s/pod_status_texts.h"

#include <fmt/core.h>

#include <cstddef>
#include <utility>

#include "k8s/json_internal.h"

namespace sluice::k8s {
namespace {

using rapidjson::Document;
using rapidjson::Value;

constexpr size_t kLastWords = 2048;

}  // namespace

std::string UnschedulableStatus(const std::string& why) {
  return fmt::format(R"({{"status":{{"conditions":[{{"type":"PodScheduled",)"
                     R"("status":"False","reason":"Unschedulable","message":"{}"}}]}}}})",
                     why);
}

std::string RunningStatus(const std::string& address) {
  return fmt::format(R"({{"status":{{"phase":"Running","podIP":"{}","conditions":[{{)"
                     R"("type":"PodScheduled","status":"True"}}],"containerStatuses":[{{)"
                     R"("name":"sluice","image":"i","imageID":"","ready":true,)"
                     R"("restartCount":0,"state":{{"running":{{)"
                     R"("startedAt":"2026-01-01T00:00:00Z"}}}}}}]}}}})",
                     address);
}

std::string EndedStatus(int exit_code, const std::string& output) {
  const std::string words =
      output.size() > kLastWords ? output.substr(output.size() - kLastWords) : output;
  Document status;
  status.SetObject();
  auto& memory = status.GetAllocator();
  Value terminated(rapidjson::kObjectType);
  SetMember(terminated, "exitCode", Value(exit_code), memory);
  const bool ok = exit_code == 0;
  SetMember(terminated, "reason", JsonText(ok ? "Completed" : "Error", memory), memory);
  if (!ok) {
    SetMember(terminated, "message", JsonText(words, memory), memory);
  }
  Value container(rapidjson::kObjectType);
  SetMember(container, "name", JsonText("sluice", memory), memory);
  SetMember(container, "image", JsonText("i", memory), memory);
  SetMember(container, "imageID", JsonText("", memory), memory);
  SetMember(container, "restartCount", Value(0), memory);
  SetMember(Within(container, {"state"}, memory), "terminated", std::move(terminated), memory);
  Value containers(rapidjson::kArrayType);
  containers.PushBack(container, memory);
  Value& about = Within(status, {"status"}, memory);
  SetMember(about, "phase", JsonText(ok ? "Succeeded" : "Failed", memory), memory);
  SetMember(about, "containerStatuses", std::move(containers), memory);
  return ToJson(status);
}

}  // namespace sluice::k8s
