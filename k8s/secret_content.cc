#include "k8s/secret_content.h"

#include <fmt/core.h>

#include "k8s/credentials_internal.h"
#include "k8s/json_internal.h"

namespace sluice::k8s {

Result<std::map<std::string, std::string>> SecretContent(const Object& secret) {
  const std::string what = fmt::format("secret {}", secret.name);
  ASSIGN_OR_RETURN(const rapidjson::Document json, ParseJsonObject(secret.json, what));
  std::map<std::string, std::string> content;
  const rapidjson::Value* data = FindIn(json, {"data"});
  if (data == nullptr || !data->IsObject()) {
    return content;
  }
  for (const auto& member : data->GetObject()) {
    const std::string key(member.name.GetString(), member.name.GetStringLength());
    const std::string_view base64 = TextIn(*data, {key});
    if (!base64.empty()) {
      ASSIGN_OR_RETURN(content[key], DecodeBase64(base64, what));
    } else {
      content[key] = "";
    }
  }
  return content;
}

}  // namespace sluice::k8s
