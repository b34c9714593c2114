#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/config/config.h"
#include "server/load/load_table.h"
#include "server/shell/script.h"

// What the subcommands of `sluice` do. Each returns the exit code of the process.
namespace sluice::server {

struct SqlOptions {
  std::string gateway;          // HOST:PORT; "": config.source in this process
  std::string gateway_ca;       // PEM file: talk TLS to the gateway
  std::vector<Script> scripts;  // -c and the contents of -f, in their order
  bool from_input = false;      // nothing was given: read standard input
  std::string format = "table";
};
int RunSql(const Config& config, const SqlOptions& options);

// Gateway until SIGINT or SIGTERM.
int RunServe(const Config& config);

// Prints what a superuser runs for a gateway that keeps to SCRAM.
int RunSetup(const Config& config);

struct PasswordOptions {
  std::string name;
  bool remove = false;
};
// A user of a gateway over SQLite. The password is asked for twice, without showing it, or is the
// first line of a standard input that is no terminal.
int RunPassword(const Config& config, const PasswordOptions& options);

struct SampleOptions {
  std::string kind;  // "census", "clicks"
  int64_t rows = 0;
  std::string into;       // URL
  std::string into_file;  // with the URL in it, in place of `into`
  std::string table;
  uint64_t seed = 1;
  bool replace = false;
};
int RunSample(const SampleOptions& options);

// Prints what a Kubernetes cluster needs before it trains, or writes it as a base of kustomize.
struct K8sManifestOptions {
  std::string namespace_name;
  std::string image;   // "": of this version
  std::string folder;  // "": one stream of documents on standard output
};
int RunK8sManifests(const K8sManifestOptions& options);

// The command-line form of a statement: it is printed, then run.
int RunStatementCommand(const Config& config, const std::string& statement,
                        const std::string& format);

// A CSV file becomes a table of config.source, or more of its rows.
int RunLoad(const Config& config, const LoadOptions& options);

}  // namespace sluice::server
