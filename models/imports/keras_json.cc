#include <fmt/core.h>
#include <rapidjson/error/en.h>

#include <algorithm>
#include <cmath>

#include "models/imports/keras_json_internal.h"

namespace sluice::models::keras {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;
// Of nested brackets; Keras writes about twelve.
constexpr int kDeepest = 100;

const Json& Null() {
  static const Json null;
  return null;
}

// The position of the first bracket that is too deep; npos: none.
size_t TooDeep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      i += c == '\\' ? 1 : 0;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) {
        return i;
      }
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return std::string_view::npos;
}

Span At(size_t place) {
  return {static_cast<int64_t>(place), static_cast<int64_t>(place) + 1};
}

}  // namespace

Status ParseJson(std::string_view text, rapidjson::Document* document) {
  if (text.size() > kMaxBytes) {
    return InvalidArgument(
        fmt::format("a model of {} bytes of JSON: at most {}", text.size(), kMaxBytes));
  }
  if (const size_t place = TooDeep(text); place != std::string_view::npos) {
    return InvalidArgument(fmt::format("the JSON is nested more than {} deep", kDeepest))
        .At(At(place));
  }
  document->Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag>(text.data(),
                                                                                   text.size());
  if (document->HasParseError()) {
    return InvalidArgument(fmt::format("this is not JSON: {}",
                                       rapidjson::GetParseError_En(document->GetParseError())))
        .At(At(std::min(document->GetErrorOffset(), text.empty() ? 0 : text.size() - 1)))
        .Hint("model.to_json() of Keras prints what is expected");
  }
  return OkStatus();
}

const Json& Member(const Json& object, const char* name) {
  if (!object.IsObject()) {
    return Null();
  }
  const auto found = object.FindMember(name);
  return found == object.MemberEnd() ? Null() : found->value;
}

bool Has(const Json& object, const char* name) {
  return !Member(object, name).IsNull();
}

std::string Text(const Json& object, const char* name, std::string_view otherwise) {
  const Json& member = Member(object, name);
  return member.IsString() ? std::string(member.GetString(), member.GetStringLength())
                           : std::string(otherwise);
}

bool Flag(const Json& object, const char* name, bool otherwise) {
  const Json& member = Member(object, name);
  return member.IsBool() ? member.GetBool() : otherwise;
}

double Number(const Json& object, const char* name, double otherwise) {
  const Json& member = Member(object, name);
  return member.IsNumber() ? member.GetDouble() : otherwise;
}

Result<int64_t> Whole(const Json& config, const char* name, int64_t least, int64_t most,
                      std::optional<int64_t> otherwise) {
  const Json* value = &Member(config, name);
  if (value->IsArray() && value->Size() == 1) {  // [3]: one axis
    value = &(*value)[0];
  }
  if (value->IsNull() && otherwise) {
    return *otherwise;
  }
  const double number = value->IsNumber() ? value->GetDouble() : std::nan("");
  if (!(number >= static_cast<double>(least) && number <= static_cast<double>(most)) ||
      number != std::floor(number)) {
    return InvalidArgument(
        fmt::format("{} must be a whole number from {} to {}", name, least, most));
  }
  return static_cast<int64_t>(number);
}

std::optional<std::vector<int64_t>> Extents(const Json& list) {
  if (!list.IsArray()) {
    return std::nullopt;
  }
  std::vector<int64_t> extents;
  for (const Json& extent : list.GetArray()) {
    if (!extent.IsNull() && !extent.IsInt64()) {
      return std::nullopt;
    }
    extents.push_back(extent.IsNull() ? -1 : extent.GetInt64());
  }
  return extents;
}

}  // namespace sluice::models::keras
