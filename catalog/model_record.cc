#include "catalog/model_record.h"

#include <fmt/core.h>
#include <rapidjson/document.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>
#include <utility>

#include "catalog/sha256.h"
#include "catalog/sql/sql_session.h"

namespace sluice::catalog {
namespace {

// A model has some ten metrics, but every role that may write the table may write anything into the
// column.
constexpr size_t kMaxMetricsBytes = size_t{1} << 20;

// Reads the members of one object. A nested object or array ends the reading, so that the reader
// never recurses.
class MetricsHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, MetricsHandler> {
 public:
  bool StartObject() { return !std::exchange(inside_, true); }
  bool StartArray() { return false; }
  bool Key(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    metrics_.emplace_back(std::string(text, size), std::nan(""));
    return true;
  }
  bool Double(double value) { return Put(value); }
  bool Int(int value) { return Put(value); }
  bool Uint(unsigned value) { return Put(value); }
  bool Int64(int64_t value) { return Put(static_cast<double>(value)); }
  bool Uint64(uint64_t value) { return Put(static_cast<double>(value)); }
  bool String(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    const std::string_view word(text, size);
    return Put(word == "Infinity" ? HUGE_VAL : word == "-Infinity" ? -HUGE_VAL : std::nan(""));
  }
  bool Default() { return inside_; }  // null, true, false: treated as not a number
  std::vector<std::pair<std::string, double>> Take() { return std::move(metrics_); }

 private:
  bool Put(double value) {
    if (inside_) {
      metrics_.back().second = value;
    }
    return inside_;
  }
  bool inside_ = false;
  std::vector<std::pair<std::string, double>> metrics_;
};

}  // namespace

std::string Sha256Hex(std::string_view bytes) {
  Sha256 digest;
  digest.Add(bytes);
  return digest.Hex();
}

std::string MetricsToJson(const std::vector<std::pair<std::string, double>>& metrics) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.StartObject();
  for (const auto& [name, value] : metrics) {
    writer.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
    if (std::isfinite(value)) {
      writer.Double(value);
    } else {
      const std::string text = FormatDouble(value);
      writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
    }
  }
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

std::vector<std::pair<std::string, double>> MetricsFromJson(const std::string& json) {
  if (json.size() > kMaxMetricsBytes) {
    return {};
  }
  rapidjson::Reader reader;
  rapidjson::MemoryStream stream(json.data(), json.size());
  MetricsHandler handler;
  return reader.Parse<rapidjson::kParseFullPrecisionFlag>(stream, handler)
             ? handler.Take()
             : std::vector<std::pair<std::string, double>>();
}

std::optional<int64_t> RowsPerEpoch(const std::string& lineage) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(lineage.data(), lineage.size());
  constexpr char kName[] = "rows_per_epoch";
  if (document.HasParseError() || !document.IsObject() || !document.HasMember(kName) ||
      !document[kName].IsInt64()) {
    return std::nullopt;
  }
  return document[kName].GetInt64();
}

ModelVersion VersionFromRow(const std::vector<Value>& row) {
  ModelVersion model;
  model.schema = TextCell(row.at(0));
  model.name = TextCell(row.at(1));
  model.version = IntegerCell(row.at(2));
  model.live = IntegerCell(row.at(3)) != 0;
  model.type = TextCell(row.at(4));
  model.statement = TextCell(row.at(5));
  model.plan = TextCell(row.at(6));
  model.metrics = MetricsFromJson(TextCell(row.at(7)));
  model.job = IntegerCell(row.at(8));
  model.rows = IntegerCell(row.at(9));
  model.lineage = TextCell(row.at(10));
  model.rows_per_epoch = RowsPerEpoch(model.lineage).value_or(model.rows);
  model.weights_sha256 = TextCell(row.at(11));
  model.weights_bytes = IntegerCell(row.at(12));
  model.created_micros = IntegerCell(row.at(13));
  if (row.size() > 14) {
    model.owner = TextCell(row[14]);
  }
  return model;
}

}  // namespace sluice::catalog
