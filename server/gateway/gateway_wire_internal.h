#pragma once

#include <functional>
#include <string_view>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/job_store.h"
#include "elastic/job/training_job.h"
#include "server/gateway/gateway.pb.h"

// Converts between our types and those of gateway.proto.
namespace sluice::server {

// Keepalive: each side notices when the other has vanished without closing (a pulled cable).
inline constexpr int kKeepaliveMs = 10'000;
inline constexpr int kKeepaliveTimeoutMs = 5'000;

v1::Header HeaderToWire(const Schema& schema);
Result<Schema> HeaderFromWire(const v1::Header& header);

// Cuts the batch into messages of about a megabyte, far below every client's limit, and passes each
// to `send`.
Status RowsToWire(const RowBatch& batch, const std::function<Status(v1::Rows&&)>& send);
// The texts of the batch point into `rows`. Fails when the message does not fit the schema.
Status RowsFromWire(const v1::Rows& rows, const Schema& schema, RowBatch* batch);

v1::Progress ProgressToWire(const elastic::Progress& progress);
elastic::Progress ProgressFromWire(const v1::Progress& progress);

// Trailing metadata of a call that fails: a serialized v1::Error.
inline constexpr char kErrorMetadata[] = "sluice-error-bin";

v1::Error ErrorToWire(const Status& status, std::string_view script);
Status ErrorFromWire(const v1::Error& error);

void JobToWire(const catalog::Job& job, v1::Job* wire);

}  // namespace sluice::server
