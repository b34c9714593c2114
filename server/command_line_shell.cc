#include <CLI/CLI.hpp>
#include <map>
#include <utility>

#include "base/status.h"
#include "server/command_line_internal.h"
#include "server/commands.h"
#include "server/config/terminal.h"
#include "server/shell/script.h"
#include "server/shell/shell.h"

namespace sluice::server {
namespace {

// -c and -f in the order in which they were given.
Status CollectScripts(const CLI::App& command, SqlOptions& options) {
  std::map<const CLI::Option*, size_t> taken;
  for (const CLI::Option* option : command.parse_order()) {
    const size_t next = taken[option]++;
    if (option->get_name() == "--command") {
      options.scripts.push_back({option->results().at(next)});
    } else if (option->get_name() == "--file") {
      ASSIGN_OR_RETURN(Script script, ReadScript(option->results().at(next)));
      options.scripts.push_back(std::move(script));
    }
  }
  options.from_input = options.scripts.empty();
  return OkStatus();
}

}  // namespace

void AddShell(CLI::App& app, CommandLine& line) {
  CLI::App* sql = app.add_subcommand("sql", "Shell and batch: run statements");
  AddCommon(*sql, line.common);
  sql->add_option("--gateway", line.sql.gateway,
                  "HOST:PORT of a running gateway; sluice://USER@HOST:PORT logs in as that user");
  sql->add_option("--gateway-ca", line.sql.gateway_ca, "PEM file: talk TLS to the gateway");
  AddTrainingFlags(*sql, line.common);
  sql->add_option("-c,-e,--command", "run these statements (may be repeated)")->take_all();
  sql->add_option("-f,--file", "run this file; - is standard input (may be repeated)")->take_all();
  AddFormat(*sql, line.sql.format);
  sql->callback([sql, &line] {
    line.run = [sql, &line] {
      const Status status = CollectScripts(*sql, line.sql);
      if (!status.ok()) {
        SayError(status, "");
        return kExitUsage;
      }
      return WithConfig(line.common,
                        [&line](const Config& config) { return RunSql(config, line.sql); });
    };
  });
}

}  // namespace sluice::server
