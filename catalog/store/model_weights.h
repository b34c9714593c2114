#pragma once

#include <string>
#include <string_view>

#include "catalog/catalog.h"
#include "catalog/sql/sql_session.h"

// A version's weights, as rows of model_chunks.
namespace sluice::catalog {

class ModelRows;

// The error of ReadWeights for weights that differ from those that were stored.
inline constexpr std::string_view kDamagedWeights = "XX001";

Status InsertWeights(ModelRows& rows, SqlSession& session, const ModelVersion& model,
                     std::string_view weights);
// Checked against the size and the SHA-256 that the version records, before that much is allocated.
Result<std::string> ReadWeights(ModelRows& rows, SqlSession& session, const ModelVersion& model);

}  // namespace sluice::catalog
