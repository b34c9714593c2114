#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace sluice::testing {

// The folder of PostgreSQL's own regression tests, *.sql, which scripts/install_packages takes from
// the source of Debian's libpg-query; "": where that cannot be had.
inline std::string PostgresRegressFolder() {
  const char* const given = std::getenv("SLUICE_TEST_POSTGRES_REGRESS");
  const std::string folder =
      given != nullptr ? given : "/usr/local/share/sluice-tests/postgres_regress";
  return std::filesystem::is_directory(folder) ? folder : "";
}

}  // namespace sluice::testing
