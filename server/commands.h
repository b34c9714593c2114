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
  bool from_input = false;      // neither -c nor -f was given: read standard input
  std::string format = "table";
};
int RunSql(const Config& config, const SqlOptions& options);

// Runs a gateway until SIGINT or SIGTERM.
int RunServe(const Config& config);

// Shares a Kubernetes cluster among its TrainingJobs until SIGINT or SIGTERM.
int RunController(const Config& config);

// Prints the statements that a superuser runs before a gateway may use SCRAM.
int RunSetup(const Config& config);

struct PasswordOptions {
  std::string name;
  bool remove = false;
};
// Adds, changes or removes a user of a gateway over SQLite. The password is prompted for twice
// without echo; if standard input is not a terminal, it is the first line of it.
int RunPassword(const Config& config, const PasswordOptions& options);

struct SampleOptions {
  std::string kind;  // "census", "clicks"
  int64_t rows = 0;
  std::string into;       // URL
  std::string into_file;  // file that holds the URL, instead of `into`
  std::string table;
  uint64_t seed = 1;
  bool replace = false;
};
int RunSample(const SampleOptions& options);

// A file becomes a model type: CREATE MODEL TYPE.
struct ModelPushOptions {
  std::string file;        // net.onnx, net.json
  std::string name;        // "": that of the file
  bool replace = false;    // a further version of a type that is there
  std::string gateway;     // as in SqlOptions
  std::string gateway_ca;
};
int RunModelPush(const Config& config, const ModelPushOptions& options);
// The statement; an error says what of the file or the name is wrong.
Result<std::string> CreateModelTypeText(const ModelPushOptions& options);
// As the end of the file's name says; "": it is no file of a model.
std::string ModelLanguageOf(const std::string& file);

// Prints what a Kubernetes cluster needs before it can train, or writes it as a kustomize base.
struct K8sManifestOptions {
  std::string namespace_name;
  std::string image;   // "": the image of this version
  std::string folder;  // "": print all documents as one stream to standard output
};
int RunK8sManifests(const K8sManifestOptions& options);

// The command-line form of a statement: prints the statement, then runs it.
int RunStatementCommand(const Config& config, const std::string& statement,
                        const std::string& format);

// Loads a CSV file into a new table of config.source, or appends its rows to an existing one.
int RunLoad(const Config& config, const LoadOptions& options);

}  // namespace sluice::server
