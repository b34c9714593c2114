#include <fmt/core.h>
#include <rapidjson/error/en.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <string>
#include <string_view>
#include <utility>

#include "k8s/json_internal.h"

namespace sluice::k8s {
namespace {

using rapidjson::Value;

// Counts braces and brackets outside strings, before anything is built from them.
bool TooDeep(std::string_view text) {
  int depth = 0;
  bool in_string = false, escaped = false;
  for (const char character : text) {
    if (in_string) {
      in_string = escaped || character != '"';
      escaped = !escaped && character == '\\';
    } else if (character == '"') {
      in_string = true;
    } else if (character == '{' || character == '[') {
      if (++depth > kMaxJsonDepth) {
        return true;
      }
    } else if (character == '}' || character == ']') {
      --depth;
    }
  }
  return false;
}

Value::StringRefType Name(std::string_view name) {
  return {name.data() == nullptr ? "" : name.data(), static_cast<rapidjson::SizeType>(name.size())};
}

const Value& EmptyArray() {
  static const Value empty(rapidjson::kArrayType);
  return empty;
}

// A member of an object that may be changed. Without RapidJSON's iterators, whose == is ambiguous
// in C++20.
Value* MemberOf(Value& object, std::string_view name) {
  return const_cast<Value*>(FindIn(object, {name}));
}

}  // namespace

Result<rapidjson::Document> ParseJsonObject(std::string_view text, std::string_view what) {
  if (TooDeep(text)) {
    return InvalidArgument(fmt::format("{} is nested deeper than {} levels", what, kMaxJsonDepth));
  }
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag |
                 rapidjson::kParseFullPrecisionFlag>(text.data() == nullptr ? "" : text.data(),
                                                     text.size());
  if (document.HasParseError()) {
    return InvalidArgument(fmt::format("{} is not JSON: {} at byte {}", what,
                                       rapidjson::GetParseError_En(document.GetParseError()),
                                       document.GetErrorOffset()));
  }
  if (!document.IsObject()) {
    return InvalidArgument(fmt::format("{} is JSON, but not an object", what));
  }
  return Result<rapidjson::Document>(std::move(document));
}

std::string ToJson(const Value& value) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  value.Accept(writer);
  return {buffer.GetString(), buffer.GetSize()};
}

const Value* FindIn(const Value& value, std::initializer_list<std::string_view> path) {
  const Value* at = &value;
  for (const std::string_view name : path) {
    if (!at->IsObject()) {
      return nullptr;
    }
    const auto found = at->FindMember(Value(Name(name)));
    if (found == at->MemberEnd()) {
      return nullptr;
    }
    at = &found->value;
  }
  return at;
}

std::string_view TextIn(const Value& value, std::initializer_list<std::string_view> path) {
  const Value* found = FindIn(value, path);
  return found != nullptr && found->IsString()
             ? std::string_view(found->GetString(), found->GetStringLength())
             : std::string_view();
}

int64_t NumberIn(const Value& value, std::initializer_list<std::string_view> path) {
  const Value* found = FindIn(value, path);
  return found != nullptr && found->IsInt64() ? found->GetInt64() : 0;
}

bool TrueIn(const Value& value, std::initializer_list<std::string_view> path) {
  const Value* found = FindIn(value, path);
  return found != nullptr && found->IsTrue();
}

Value::ConstArray ArrayIn(const Value& value, std::initializer_list<std::string_view> path) {
  const Value* found = FindIn(value, path);
  return (found != nullptr && found->IsArray() ? *found : EmptyArray()).GetArray();
}

Value& Within(Value& value, std::initializer_list<std::string_view> path,
              rapidjson::Document::AllocatorType& memory) {
  Value* at = &value;
  for (const std::string_view name : path) {
    Value* found = MemberOf(*at, name);
    if (found == nullptr) {
      at->AddMember(JsonText(name, memory), Value(rapidjson::kObjectType), memory);
      found = MemberOf(*at, name);
    } else if (!found->IsObject()) {
      found->SetObject();
    }
    at = found;
  }
  return *at;
}

Value JsonText(std::string_view text, rapidjson::Document::AllocatorType& memory) {
  return Value(text.data() == nullptr ? "" : text.data(),
               static_cast<rapidjson::SizeType>(text.size()), memory);
}

void SetMember(Value& object, std::string_view name, Value value,
               rapidjson::Document::AllocatorType& memory) {
  Value* const found = MemberOf(object, name);
  if (found == nullptr) {
    object.AddMember(JsonText(name, memory), value, memory);
  } else {
    *found = value;
  }
}

}  // namespace sluice::k8s
