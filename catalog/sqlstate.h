#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::catalog {

// The status code that a database's SQLSTATE stands for.
Code CodeOfSqlState(std::string_view sqlstate);

// A Status with that SQLSTATE and its code.
Status DatabaseError(std::string_view sqlstate, std::string message);

}  // namespace sluice::catalog
