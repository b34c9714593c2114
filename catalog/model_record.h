#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/value.h"
#include "catalog/model_store.h"

// How a model version is stored in the columns of model_versions.
namespace sluice::catalog {

std::string Sha256Hex(std::string_view bytes);

// A JSON object in the given order; values that JSON cannot hold as numbers are stored as text.
std::string MetricsToJson(const std::vector<std::pair<std::string, double>>& metrics);
// The inverse; empty if the text is not such an object.
std::vector<std::pair<std::string, double>> MetricsFromJson(const std::string& json);

// rows_per_epoch from the lineage; nullopt if missing.
std::optional<int64_t> RowsPerEpoch(const std::string& lineage);

// Cells in the order schema_name, name, version, live, type, statement, plan, metrics, job,
// rows_trained, lineage, weights_sha256, weights_bytes, created_micros, and perhaps the owner.
ModelVersion VersionFromRow(const std::vector<Value>& row);

}  // namespace sluice::catalog
