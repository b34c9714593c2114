#pragma once

#include <string_view>

#include "base/status.h"

namespace sluice::server {

// PostgreSQL cuts longer names of roles and databases off, and so logs in another one than the one
// by whose name the gateway would count, throttle and record. 28000: `role` or `database` is one.
Status CheckLoginNames(std::string_view role, std::string_view database);

}  // namespace sluice::server
