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
// Prints the statements with which a superuser gives schema sluice to `role`.
int RunAdoption(const std::string& role);

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

// Creates a model type from a file: CREATE MODEL TYPE.
struct ModelPushOptions {
  std::string file;      // net.onnx, net.json, net.py:Class
  std::string name;      // "": by the file
  bool replace = false;  // a new version of an existing type
  std::string gateway;   // as in SqlOptions
  std::string gateway_ca;
};
int RunModelPush(const Config& config, const ModelPushOptions& options);
// The statement; an error names what is wrong with the file or the name.
Result<std::string> CreateModelTypeText(const ModelPushOptions& options);
// By the extension of the file name; "": not a model file.
std::string ModelLanguageOf(const std::string& file);
// Of the type that a file becomes: "net" of net.onnx, "Wide" of net.py:Wide.
std::string ModelTypeNameOf(const std::string& file);
// A folder's model: its file net.onnx, or a class by its module, as my_models.Wide is the class
// Wide of my_models.py, and the name of its type.
Result<ModelPushOptions> ModelOfZoo(const std::string& folder, const std::string& definition);

// Prints what a Kubernetes cluster needs before it can train, or writes it as a kustomize base.
struct K8sManifestOptions {
  std::string namespace_name;
  std::string image;  // "": the image of this version
  std::string pods_allow;
  bool without_rules = false;
  bool charts = false;
  std::string folder;  // "": print all documents as one stream to standard output
};
int RunK8sManifests(const K8sManifestOptions& options);

// The command-line form of a statement: prints the statement, then runs it.
int RunStatementCommand(const Config& config, const std::string& statement,
                        const std::string& format);

// Loads a CSV file into a new table of config.source, or appends its rows to an existing one.
int RunLoad(const Config& config, const LoadOptions& options);

}  // namespace sluice::server
