#pragma once

#include <cstdint>

namespace sluice::catalog {

// What a role may store in a database; 0: no limit. Superusers and the catalog's own login have
// none. In a database without roles the limits hold for all users together.
struct RoleLimits {
  int64_t versions = 0;  // of one model
  int64_t bytes = 0;     // weights of all versions of all its models
};

}  // namespace sluice::catalog
