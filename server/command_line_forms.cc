#include <CLI/CLI.hpp>
#include <string>

#include "base/status.h"
#include "server/command_line_internal.h"
#include "server/commands.h"
#include "server/config/terminal.h"
#include "server/shell/shell.h"
#include "server/statements/statement_form.h"

namespace sluice::server {
namespace {

// Runs a statement that was built from flags.
int RunForm(const Config& config, const Result<std::string>& statement, const std::string& format) {
  if (!statement.ok()) {
    SayError(statement.status(), "");
    return kExitUsage;
  }
  return RunStatementCommand(config, *statement, format);
}

// A model definition that is a file, or in a folder of models, becomes a model type first.
int RunTrainForm(const Config& config, TrainForm form, const std::string& format) {
  Result<ModelPushOptions> model = ModelPushOptions{};
  if (!form.model_zoo.empty()) {
    model = ModelOfZoo(form.model_zoo, form.model_def);
  } else if (!ModelLanguageOf(form.model_def).empty()) {
    model->file = form.model_def;
  }
  if (!model.ok()) {
    SayError(model.status(), "");
    return kExitUsage;
  }
  if (!model->file.empty()) {
    model->replace = true;
    const int pushed = RunModelPush(config, *model);
    if (pushed != kExitOk) {
      return pushed;
    }
    form.model_def = model->name.empty() ? ModelTypeNameOf(model->file) : model->name;
  }
  return RunForm(config, TrainStatementText(form), format);
}

void AddTrain(CLI::App& app, CommandLine& line) {
  CLI::App* train = app.add_subcommand("train", "Command-line form of TO TRAIN");
  AddCommon(*train, line.common);
  AddPython(*train, line.common);
  AddFormat(*train, line.format);
  train->add_option(
      "--model_def", line.train.model_def,
      "model type, or a file that is one: net.onnx, net.json, net.py:Class (default: chosen)");
  train->add_option(
      "--model_zoo", line.train.model_zoo,
      "folder of models, of which --model_def names one: my_models.WideNet is the class WideNet of "
      "my_models.py");
  train->add_option("--model_params", line.train.model_params,
                    "\"hidden_units=[64,32]; n_classes=3\"");
  train->add_option("--training_data", line.train.training_data, "table or SELECT")->required();
  train->add_option("--validation_data", line.train.validation_data, "table or SELECT");
  train->add_option("--label", line.train.label, "column to learn")->required();
  train->add_option("--output", line.train.output, "model to make")->required();
  train->add_option("--base", line.train.base, "model to continue from");
  train->add_option("--num_epochs", line.train.num_epochs, "passes over the data");
  train->add_option("--minibatch_size", line.train.minibatch_size, "rows in a step");
  train->add_option("--max_step", line.train.max_step, "steps at most");
  train->add_option("--num_workers", line.train.num_workers, "worker processes");
  train->add_option("--num_ps_pods", line.train.num_ps_pods, "parameter server processes");
  train->callback([&line] {
    line.run = [&line] {
      return WithConfig(line.common, [&line](const Config& config) {
        return RunTrainForm(config, line.train, line.format);
      });
    };
  });
}

void AddOutputTable(CLI::App& app, OutputForm& form) {
  CLI::Option* replace = app.add_flag(
      "--replace", form.replace,
      "the output may replace a table that Sluice did not write, or that was altered since");
  app.add_flag("--append", form.append, "add the rows to the output's table")->excludes(replace);
}

void AddPredict(CLI::App& app, CommandLine& line) {
  CLI::App* predict = app.add_subcommand("predict", "Command-line form of TO PREDICT");
  AddCommon(*predict, line.common);
  AddFormat(*predict, line.format);
  predict->add_option("--model", line.predict.model, "model to use")->required();
  predict->add_option("--prediction_data", line.predict.prediction_data, "table or SELECT")
      ->required();
  predict->add_option("--output", line.predict.output, "table.column (default: rows are printed)");
  AddOutputTable(*predict, line.predict.output_table);
  predict->callback([&line] {
    line.run = [&line] {
      return WithConfig(line.common, [&line](const Config& config) {
        return RunForm(config, PredictStatementText(line.predict), line.format);
      });
    };
  });
}

void AddEvaluate(CLI::App& app, CommandLine& line) {
  CLI::App* evaluate = app.add_subcommand("evaluate", "Command-line form of TO EVALUATE");
  AddCommon(*evaluate, line.common);
  AddFormat(*evaluate, line.format);
  evaluate->add_option("--model", line.evaluate.model, "model to evaluate")->required();
  evaluate->add_option("--validation_data", line.evaluate.validation_data, "table or SELECT")
      ->required();
  evaluate->add_option("--label", line.evaluate.label,
                       "column to compare with (default: the model's)");
  evaluate->add_option("--output", line.evaluate.output, "table for the metrics");
  AddOutputTable(*evaluate, line.evaluate.output_table);
  evaluate->callback([&line] {
    line.run = [&line] {
      return WithConfig(line.common, [&line](const Config& config) {
        return RunForm(config, EvaluateStatementText(line.evaluate), line.format);
      });
    };
  });
}

}  // namespace

void AddStatementForms(CLI::App& app, CommandLine& line) {
  AddTrain(app, line);
  AddPredict(app, line);
  AddEvaluate(app, line);
}

}  // namespace sluice::server
