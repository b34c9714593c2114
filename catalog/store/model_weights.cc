#include "catalog/store/model_weights.h"

#include <fmt/core.h>

#include <utility>

#include "catalog/model_record.h"
#include "catalog/store/model_rows.h"

namespace sluice::catalog {
namespace {

// Both databases handle a value of this size easily, and the number of chunks does not matter.
constexpr size_t kChunkBytes = size_t{1} << 20;

Status Damaged(const ModelVersion& model, std::string detail) {
  return Status(Code::kFailedPrecondition,
                fmt::format("the stored weights of model '{}:{}' are damaged",
                            FullModelName(model.schema, model.name), model.version))
      .SqlState(kDamagedWeights)
      .Detail(std::move(detail))
      .Hint("train the model again, or restore the table model_chunks from a backup");
}

// Checked before anything is allocated: the chunks are numbered without a gap, and have as many
// bytes as the version states.
Status CheckChunks(ModelRows& rows, SqlSession& session, const ModelVersion& model) {
  ASSIGN_OR_RETURN(
      const SqlRows found,
      rows.Ask(session,
               "SELECT count(*), coalesce(min(position), 0), coalesce(max(position), -1),"
               " coalesce(sum(length(bytes)), 0) FROM {model_chunks}"
               " WHERE schema_name = $1 AND name = $2 AND version = $3",
               {model.schema, model.name, model.version}));
  const int64_t count = IntegerCell(found.at(0).at(0));
  const int64_t bytes = IntegerCell(found[0].at(3));
  const bool whole = IntegerCell(found[0].at(1)) == 0 && IntegerCell(found[0].at(2)) == count - 1;
  if (!whole || bytes != model.weights_bytes) {
    return Damaged(model, fmt::format("its {} chunks{} hold {} bytes, recorded are {}", count,
                                      whole ? "" : ", some of which are missing,", bytes,
                                      model.weights_bytes));
  }
  return OkStatus();
}

}  // namespace

Status InsertWeights(ModelRows& rows, SqlSession& session, const ModelVersion& model,
                     std::string_view weights) {
  for (size_t begin = 0; begin < weights.size(); begin += kChunkBytes) {
    RETURN_IF_ERROR(rows.Run(
        session,
        "INSERT INTO {model_chunks} (schema_name, name, version, position, bytes)"
        " VALUES ($1, $2, $3, $4, $5)",
        {model.schema, model.name, model.version, static_cast<int64_t>(begin / kChunkBytes),
         SqlBytes{weights.substr(begin, kChunkBytes)}}));
  }
  return OkStatus();
}

Result<std::string> ReadWeights(ModelRows& rows, SqlSession& session, const ModelVersion& model) {
  RETURN_IF_ERROR(CheckChunks(rows, session, model));
  std::string weights;
  weights.reserve(static_cast<size_t>(model.weights_bytes));
  for (int64_t position = 0; std::cmp_less(weights.size(), model.weights_bytes); ++position) {
    ASSIGN_OR_RETURN(
        const SqlRows found,
        rows.Ask(session,
                 "SELECT bytes FROM {model_chunks} WHERE schema_name = $1 AND name = $2"
                 " AND version = $3 AND position = $4",
                 {model.schema, model.name, model.version, position}));
    const std::string chunk = found.empty() ? "" : TextCell(found[0][0]);
    if (chunk.empty()) {
      break;  // the checksum reveals that something is missing
    }
    weights += chunk;
  }
  const std::string checksum = Sha256Hex(weights);
  if (checksum != model.weights_sha256) {
    return Damaged(
        model, fmt::format("SHA-256 of the {} bytes read is {}, recorded is {} of {} bytes",
                           weights.size(), checksum, model.weights_sha256, model.weights_bytes));
  }
  return weights;
}

}  // namespace sluice::catalog
