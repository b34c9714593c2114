#pragma once

#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::planner {

// Indented JSON, in the order of the calls. A number that is not finite is null.
class IndentedJson {
 public:
  IndentedJson() { writer_.SetIndent(' ', 2); }

  void Open() { writer_.StartObject(); }
  void Open(std::string_view key) {
    Key(key);
    writer_.StartObject();
  }
  void Close() { writer_.EndObject(); }
  void OpenList(std::string_view key) {
    Key(key);
    writer_.StartArray();
  }
  void CloseList() { writer_.EndArray(); }
  void Item(const std::string& text) { Text(text); }
  void Item(double number) { Number(number); }

  void Put(std::string_view key, const std::string& text) {
    Key(key);
    Text(text);
  }
  void Put(std::string_view key, std::string_view text) { Put(key, std::string(text)); }
  void Put(std::string_view key, const char* text) { Put(key, std::string(text)); }
  void Put(std::string_view key, int64_t number) {
    Key(key);
    writer_.Int64(number);
  }
  void Put(std::string_view key, uint32_t number) { Put(key, int64_t{number}); }
  void Put(std::string_view key, int32_t number) { Put(key, int64_t{number}); }
  void Put(std::string_view key, uint64_t number) {
    Key(key);
    writer_.Uint64(number);
  }
  void Put(std::string_view key, double number) {
    Key(key);
    Number(number);
  }
  void Put(std::string_view key, bool flag) {
    Key(key);
    writer_.Bool(flag);
  }
  std::string Take() { return buffer_.GetString(); }

 private:
  void Key(std::string_view key) {
    writer_.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
  }
  void Text(const std::string& text) {
    writer_.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
  }
  void Number(double number) {
    if (std::isfinite(number)) {
      writer_.Double(number);
    } else {
      writer_.Null();  // JSON has no infinity
    }
  }

  rapidjson::StringBuffer buffer_;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> writer_{buffer_};
};

}  // namespace sluice::planner
