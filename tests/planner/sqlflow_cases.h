#pragma once

#include <rapidjson/document.h>
#include <rapidjson/istreamwrapper.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "fake_source.h"
#include "parser/parser.h"

// SQLFlow's own answers (tests/data/sqlflow_cases.json): `same` means the same meaning, `reject` an
// error; anything else is explained by the case. Where language.md goes further, the test lists the
// exception with its reason.
namespace sluice::planner {

struct Case {
  std::string id, stage, statement, upstream, want;
  std::map<std::string, std::string> saved_models;
};

inline const rapidjson::Document& Data() {
  static const rapidjson::Document* document = [] {
    auto* parsed = new rapidjson::Document;
    std::ifstream in(std::string(SLUICE_SOURCE_DIR) + "/tests/data/sqlflow_cases.json");
    rapidjson::IStreamWrapper wrapper(in);
    parsed->ParseStream(wrapper);
    return parsed;
  }();
  return *document;
}

inline std::vector<Case> Cases(const std::string& stage, const std::string& prefix) {
  std::vector<Case> cases;
  for (const auto& entry : Data()["cases"].GetArray()) {
    Case one{entry["id"].GetString(),        entry["stage"].GetString(),
             entry["statement"].GetString(), entry["upstream"].GetString(),
             entry["want"].GetString(),      {}};
    if (one.stage != stage || one.id.rfind(prefix, 0) != 0) {
      continue;
    }
    if (entry.HasMember("saved_models")) {
      for (const auto& model : entry["saved_models"].GetObject()) {
        one.saved_models[model.name.GetString()] = model.value.GetString();
      }
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

inline DataType TypeOf(const std::string& type) {
  if (type == "FLOAT" || type == "DOUBLE" || type == "DECIMAL") {
    return DataType::kDouble;
  }
  if (type == "TEXT" || type == "VARCHAR" || type == "CHAR") {
    return DataType::kText;
  }
  return type == "BOOL"       ? DataType::kBool
         : type == "DATETIME" ? DataType::kTimestamp
                              : DataType::kInt64;
}

inline Value CellOf(const rapidjson::Value& cell, DataType type) {
  if (cell.IsNull()) {
    return std::monostate();
  }
  switch (type) {
    case DataType::kDouble:
      return cell.IsString() ? std::stod(cell.GetString()) : cell.GetDouble();
    case DataType::kBool:
      return cell.GetInt64() != 0;
    case DataType::kTimestamp:
      return int64_t{1577836800000000};
    case DataType::kInt64:
      return cell.GetInt64();
    default:
      return std::string(cell.GetString());
  }
}

// The recorded tables. Some have labels of one class only, which the planner refuses, so rows that
// do not affect the case are added.
inline void AddFixtures(FakeSource* source) {
  for (const auto& entry : Data()["fixtures"].GetObject()) {
    FakeTable table;
    const auto& names = entry.value["Names"];
    for (rapidjson::SizeType i = 0; i < names.Size(); ++i) {
      table.schema.columns.push_back(
          ColumnOf(names[i].GetString(), TypeOf(entry.value["Types"][i].GetString())));
    }
    for (const auto& row : entry.value["Rows"].GetArray()) {
      std::vector<Value> cells;
      for (rapidjson::SizeType i = 0; i < row.Size(); ++i) {
        cells.push_back(CellOf(row[i], table.schema.columns[i].type));
      }
      table.rows.push_back(std::move(cells));
    }
    if (table.rows.size() == 1 || entry.name == "one.t") {
      table.rows.push_back(table.rows.back());
      table.rows.back().back() = int64_t{1};
    }
    source->tables[entry.name.GetString()] = std::move(table);
  }
}

inline parser::TrainStatement Train(const std::string& text) {
  auto parsed = parser::Parse(text);
  SLUICE_CHECK(parsed.ok(), text + ": " + parsed.status().ToString());
  return std::get<parser::TrainStatement>(parsed->at(0));
}

}  // namespace sluice::planner
