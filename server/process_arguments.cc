#include "server/process_arguments.h"

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/source_url.h"

namespace sluice::server {
namespace {

// SQL may hold secrets, such as the password in ALTER ROLE. Returns where SQL begins in `argument`,
// which follows `option`; npos: nowhere.
size_t BeginOfSql(std::string_view option, std::string_view argument) {
  for (const std::string_view takes_sql :
       {"-c", "-e", "--command", "--training_data", "--validation_data", "--prediction_data"}) {
    const bool joined = takes_sql.starts_with("--") ? argument.starts_with(takes_sql) &&
                                                          argument.size() > takes_sql.size() &&
                                                          argument[takes_sql.size()] == '='
                                                    : argument.starts_with(takes_sql);
    if (joined && argument.size() > takes_sql.size()) {
      return takes_sql.size() + (takes_sql.starts_with("--") ? 1 : 0);
    }
    if (option == takes_sql) {
      return 0;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::vector<std::string> TakeArguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = 0; i < argc; ++i) {
    arguments.emplace_back(argv[i]);
    std::string shown = catalog::WithoutSecrets(arguments.back());
    const size_t sql = i == 0 ? std::string::npos
                              : BeginOfSql(arguments[static_cast<size_t>(i) - 1], arguments.back());
    if (sql != std::string::npos) {
      shown = arguments.back().substr(0, sql) + "...";
    }
    if (shown != arguments.back()) {
      const size_t size = arguments.back().size();
      std::memset(argv[i], 0, size);
      shown.copy(argv[i], size);
    }
  }
  return arguments;
}

}  // namespace sluice::server
