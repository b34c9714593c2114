#include <CLI/CLI.hpp>

#include "server/command_line_internal.h"
#include "server/commands.h"

namespace sluice::server {
void AddModels(CLI::App& app, CommandLine& line) {
  CLI::App* model = app.add_subcommand("model", "Model types of your own");
  model->require_subcommand(1);
  CLI::App* push = model->add_subcommand("push", "A file becomes a model type");
  AddCommon(*push, line.common);
  AddPython(*push, line.common);
  push->add_option("file", line.push.file,
                   "net.onnx, net.json of Keras's to_json(), net.py:Class of PyTorch, "
                   "net.py:function of Keras")
      ->required();
  push->add_option("--name", line.push.name,
                   "of the type (default: that of the class or the file)");
  push->add_flag("--replace", line.push.replace, "a further version of a type that is there");
  push->add_option("--gateway", line.push.gateway,
                   "HOST:PORT of a running gateway; sluice://USER@HOST:PORT logs in as that user");
  push->add_option("--gateway-ca", line.push.gateway_ca, "PEM file: talk TLS to the gateway");
  push->callback([&line] {
    line.run = [&line] {
      return WithConfig(line.common,
                        [&line](const Config& config) { return RunModelPush(config, line.push); });
    };
  });
}

}  // namespace sluice::server
