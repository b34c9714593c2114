#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::catalog {

// The status code that a database's SQLSTATE stands for.
Code CodeOfSqlState(std::string_view sqlstate);

// A Status with that SQLSTATE and its code.
Status DatabaseError(std::string_view sqlstate, std::string message);

// The connection is gone, or the server does not take any now (it starts, stops, cannot be
// reached): what was asked may be asked again. Not for errors of our own processes, which look the
// same.
bool IsConnectionLost(const Status& status);
// The server has no connection left (53300): nobody's mistake, and soon over.
bool IsOutOfConnections(const Status& status);
// Somebody else's lock was in the way for too long (55P03).
bool IsLocked(const Status& status);
// Any of the three.
bool IsUnavailableForNow(const Status& status);

}  // namespace sluice::catalog
