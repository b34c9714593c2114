#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::catalog {

// The status code for a database's SQLSTATE.
Code CodeOfSqlState(std::string_view sqlstate);

// A Status with that SQLSTATE and its code.
Status DatabaseError(std::string_view sqlstate, std::string message);

// The connection is lost, or the server accepts none at present (it starts, stops or cannot be
// reached): the request may be repeated. Not for errors of our own processes, which look the same.
bool IsConnectionLost(const Status& status);
// The server has no connection left (53300): a temporary condition that is not the statement's
// fault.
bool IsOutOfConnections(const Status& status);
// Another session's lock was held for too long (55P03).
bool IsLocked(const Status& status);
// Any of the three.
bool IsUnavailableForNow(const Status& status);
// The snapshot of a dataset has ended with the connection that held it (72000).
bool IsSnapshotGone(const Status& status);
// What was not written may be written later: any of the three, or the disk is full (53100).
bool MayBeWrittenLater(const Status& status);

}  // namespace sluice::catalog
