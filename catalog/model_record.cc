#include "catalog/model_record.h"

#include <fmt/core.h>
#include <openssl/evp.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <array>
#include <cmath>

#include "catalog/sql_session.h"

namespace sluice::catalog {

std::string Sha256Hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  const int done =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr);
  SLUICE_CHECK(done == 1, "SHA-256 is always available");
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) {
    hex += fmt::format("{:02x}", static_cast<unsigned>(digest[i]));
  }
  return hex;
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
  rapidjson::Document document;
  document.Parse<rapidjson::kParseFullPrecisionFlag>(json.data(), json.size());
  std::vector<std::pair<std::string, double>> metrics;
  if (document.HasParseError() || !document.IsObject()) {
    return metrics;
  }
  // By number: clang finds rapidjson's iterators ambiguous to compare.
  for (rapidjson::SizeType i = 0; i < document.MemberCount(); ++i) {
    const auto& member = *(document.MemberBegin() + static_cast<std::ptrdiff_t>(i));
    double value = std::nan("");
    if (member.value.IsNumber()) {
      value = member.value.GetDouble();
    } else if (member.value.IsString()) {
      const std::string_view text(member.value.GetString(), member.value.GetStringLength());
      value = text == "Infinity" ? HUGE_VAL : text == "-Infinity" ? -HUGE_VAL : value;
    }
    metrics.emplace_back(std::string(member.name.GetString(), member.name.GetStringLength()),
                         value);
  }
  return metrics;
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
  return model;
}

}  // namespace sluice::catalog
