#include <CLI/CLI.hpp>
#include <string>

#include "executor/processes/child_process.h"
#include "server/command_line_internal.h"
#include "server/pgwire/ticket_desk.h"

namespace sluice::server {

// A fleet starts these; they read their configuration from an inherited descriptor.
void AddFleetProcesses(CLI::App& app, CommandLine& line) {
  for (const elastic::Role role :
       {elastic::Role::kMaster, elastic::Role::kWorker, elastic::Role::kParameterServer}) {
    CLI::App* const command = app.add_subcommand(std::string(elastic::RoleName(role)),
                                                 "Part of a running job; a fleet starts it");
    command->add_option("place", line.pod_place, "of a pod: FOLDER ADDRESS NODE NAME NUMBER")
        ->expected(5);
    command->callback([role, &line] { line.fleet_role = role; });
  }
  app.add_subcommand("job", "A statement's job in a process of its own")
      ->group("")
      ->callback([&line] { line.run = [] { return executor::RunDetachedJob(); }; });
  app.add_subcommand("desk", "Logs in for the processes of jobs; a gateway starts it")
      ->group("")
      ->callback([&line] { line.run = [] { return pgwire::RunTicketDesk(); }; });
}

}  // namespace sluice::server
