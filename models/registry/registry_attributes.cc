#include <utility>

#include "models/registry/registry_internal.h"

namespace sluice::models {
namespace {

// More workers would need more connections than any supported database should serve.
constexpr double kMaxWorkers = 1024;

AttributeSpec Make(AttributeType type, std::string name, AttributeDefault default_value,
                   Range range, std::string doc) {
  AttributeSpec spec;
  spec.name = std::move(name);
  spec.type = type;
  spec.default_value = std::move(default_value);
  spec.min = range.min;
  spec.max = range.max;
  spec.doc = std::move(doc);
  return spec;
}

AttributeSpec OrNumber(AttributeSpec spec) {
  spec.or_number = true;
  return spec;
}

// For every statement that can write a table.
std::vector<AttributeSpec> WithResultAttributes(std::vector<AttributeSpec> attributes) {
  attributes.push_back(
      Flag("result.replace", false,
           "the result's table may replace one that Sluice did not write, or that was altered "
           "since"));
  attributes.push_back(
      Flag("result.append", false, "rows are added to the result's table, whose columns must fit"));
  return attributes;
}

std::vector<AttributeSpec> PredictAttributes() {
  return WithResultAttributes({
      Text("predict.extra_outputs", {}, {},
           "further columns next to the prediction (a comma list): probability of the second class "
           "of two, else of the predicted one; probabilities, one column per class; "
           "probability_CLASS"),
      OrNumber(Text("predict.threshold", {}, {},
                    "the probability from which on a row is of the second class of two; as the "
                    "training chose it when not given, else 0.5")),
      List(AttributeType::kTextList, "predict.keep", {}, {},
           "the selected columns that the result has next to the prediction; all when not given"),
      WithoutEffect(Integer("predict.batch_size", {}, AtLeast(1),
                            "taken over from SQLFlow, no effect: batches are chosen")),
      WithoutEffect(WithAliases(Integer("engine.num_workers", {}, Between(1, kMaxWorkers),
                                        "taken over from SQLFlow, no effect: one process predicts"),
                                {"predict.num_workers"})),
  });
}

std::vector<AttributeSpec> EvaluateAttributes() {
  return WithResultAttributes({
      Text("validation.metrics", {}, {},
           "metrics to compute (a comma list); all of the model's task when not given"),
      Text("validation.report", std::string("metrics"),
           {"metrics", "thresholds", "confusion", "drift"},
           "what is answered: a row of metrics; what comes of saying the second class of two from "
           "each of some probabilities on; which classes are taken for which; or, without labels, "
           "how each column is unlike the training's"),
  });
}

std::vector<AttributeSpec> ExplainAttributes() {
  return WithResultAttributes({
      WithoutEffect(WithAliases(Text("label_col", {}, {},
                                     "taken over from SQLFlow, no effect: no row is explained by "
                                     "itself"),
                                {"label_column"})),
      WithoutEffect(Text("summary.plot_type", std::string("bar"),
                         {"bar", "dot", "violin", "decision"},
                         "taken over from SQLFlow, no effect: importances are rows")),
      WithoutEffect(
          Flag("summary.sort", true, "taken over from SQLFlow, no effect: most gain comes first")),
      WithoutEffect(Number("summary.alpha", 1.0, Between(0, 1),
                           "taken over from SQLFlow, no effect: importances are rows")),
      WithoutEffect(Integer("summary.max_display", int64_t{20}, AtLeast(1),
                            "taken over from SQLFlow, no effect: every feature is shown")),
  });
}

// For a training that leaves the model type open.
std::vector<AttributeSpec> AutoAttributes() {
  return {
      Number(
          "auto.seconds", {}, Between(0, 1e6),
          "for so long several kinds of models are tried, and the best is kept (30 for tables of "
          "fewer than a million rows, else 0: one kind, by the table's size and shape)"),
      List(AttributeType::kTextList, "auto.candidates", {}, {},
           "the kinds that are tried: linear, network, wide_deep, factorization, trees, blend; or "
           "types by name"),
      Text("auto.metric", {}, {},
           "the metric by which they are judged; log_loss of classes, rmse of numbers when not "
           "given"),
  };
}

// For a training that names its model type.
std::vector<AttributeSpec> TuneAttributes() {
  return {
      Text(
          "tune.search", std::string("halving"), {"halving", "random"},
          "how tune.ATTRIBUTE=[low, high], or [one, or, another], is searched: all trials in full, "
          "or first a ninth of the way, the best third of them a third of it, and the rest in "
          "full"),
      Integer("tune.trials", int64_t{20}, Between(1, 1000),
              "the largest number of settings to try"),
      Number("tune.seconds", 300.0, Between(0.1, 1e6), "the search takes no longer"),
      Text("tune.metric", {}, {},
           "the metric by which they are judged; log_loss of classes, rmse of numbers when not "
           "given"),
  };
}

void AppendSplitAttributes(std::vector<AttributeSpec>* attributes) {
  attributes->push_back(
      Text("split.kind", {}, {"auto", "random", "hash", "time", "column", "none"},
           "how validation rows are set aside: at random, by hash of split.column, the latest by "
           "split.column, where split.column is true, or not at all"));
  attributes->push_back(Number("split.fraction", {}, Between(0, 0.9),
                               "share of the rows that is set aside for validation"));
  attributes->push_back(
      Text("split.column", {}, {}, "the column of split.kind = hash, time or column"));
  attributes->push_back(
      Integer("split.seed", {}, AtLeast(0), "seed of the split; engine.seed when not given"));
}

void AppendEngineAttributes(std::vector<AttributeSpec>* attributes) {
  attributes->push_back(Text("engine.strategy", std::string("auto"),
                             {"auto", "local", "parameter_server", "allreduce"},
                             "where the training runs: chosen by cost when auto"));
  attributes->push_back(WithAliases(
      Integer("engine.num_workers", {}, Between(1, kMaxWorkers), "workers to start with"),
      {"train.num_workers"}));
  attributes->push_back(Integer("engine.min_workers", {}, Between(1, kMaxWorkers),
                                "the job continues while at least this many workers are left"));
  attributes->push_back(Integer("engine.max_workers", {}, Between(1, kMaxWorkers),
                                "the largest number of workers that the job grows to"));
  attributes->push_back(
      WithAliases(Integer("engine.num_ps", {}, Between(0, kMaxWorkers),
                          "parameter servers; by default as few as the model needs, on pods two"),
                  {"train.num_ps"}));
  attributes->push_back(Integer("engine.max_ps", {}, Between(0, kMaxWorkers),
                                "the largest number of parameter servers that the job grows to "
                                "while the exchange with them slows its workers"));
  attributes->push_back(Integer("engine.replicas", {}, Between(0, 1),
                                "further copies of each parameter on another server, so that a "
                                "lost one costs nothing; 1 with two servers or more"));
  attributes->push_back(Flag("engine.sync", {},
                             "true: every step waits for all workers, and the model does not "
                             "depend on their number"));
  attributes->push_back(Integer("engine.micro_batches", {}, Between(1, kMaxWorkers),
                                "with engine.sync or all-reduce: the parts of a step that workers "
                                "share, a power of two; part of what the model is, so not chosen "
                                "by the number of workers (8)"));
  attributes->push_back(WithAliases(
      Integer("engine.batches_per_shard", {}, Between(1, 10'000),
              "batches of a shard, the rows that a worker takes at once (10,000 to 30,000 rows); "
              "fewer where the database is slow, since all wait for an epoch's last shards"),
      {"engine.num_minibatches_per_task"}));
  attributes->push_back(Integer("engine.staleness", {}, Between(0, 1024),
                                "steps by which the slowest worker may be behind the fastest"));
  attributes->push_back(Text("engine.transport", std::string("float32"), {"float32", "bf16"},
                             "how weights and gradients travel between processes: bf16 halves the "
                             "messages and keeps 8 bits of precision on the way"));
  attributes->push_back(Integer("engine.priority", int64_t{0}, Between(-1000, 1000),
                                "jobs of a higher priority get their processes first"));
  attributes->push_back(Number("engine.cpu", {}, Between(0.1, 1024), "processors of one worker"));
  attributes->push_back(
      Text("engine.memory", {}, {}, "memory of one worker: 512MB, 2GB; estimated when not given"));
  attributes->push_back(
      Text("engine.on_poison", std::string("fail"), {"fail", "skip"},
           "a shard on which code fails again and again, on several workers, fails the job, or is "
           "skipped, counted and named (not with engine.sync)"));
  attributes->push_back(
      Text("engine.checkpoint_dir", {}, {},
           "a folder for checkpoints of this training, one training's alone: the same statement, "
           "run again after everything was lost, goes on from the newest; not for trees that "
           "libxgboost trains"));
  attributes->push_back(Integer("engine.keep_checkpoint_max", int64_t{5}, Between(0, 1'000'000),
                                "checkpoints that are kept while the training runs; 0: all"));
  attributes->push_back(Integer("engine.database_patience", int64_t{60}, Between(0, 86'400),
                                "seconds for which a training waits for a database that restarts, "
                                "has no connection left, or lets nobody read for a lock"));
  attributes->push_back(
      Flag("engine.new_snapshot", false,
           "a training whose snapshot was lost with its database's connections (a restart), and "
           "which has no checkpoint, begins again on a new snapshot instead of failing"));
  attributes->push_back(Integer("engine.seed", {}, AtLeast(0),
                                "seed of everything random: initial weights, order, dropout"));
}

// How a job's pods are created: ElasticDL's attributes, as in SQLFlow's statements.
void AppendPodAttributes(std::vector<AttributeSpec>* attributes) {
  attributes->push_back(Text("engine.template", {}, {},
                             "on pods: the PodTemplate of an administrator that they are made of"));
  attributes->push_back(Text("engine.image_pull_policy", {}, {"Always", "IfNotPresent", "Never"},
                             "on pods: when a node fetches the image"));
  attributes->push_back(
      Text("engine.volume", {}, {},
           "on pods: claim_name=models,mount_path=/models; with sub_path, read_only=true, and "
           "several of them with ; in between"));
  for (const auto& [role, pods] : {std::pair<std::string, std::string>("master", "the master"),
                                   {"worker", "a worker"},
                                   {"ps", "a parameter server"}}) {
    attributes->push_back(Text("engine." + role + "_resource_request", {}, {},
                               "on pods: what " + pods + " asks for: cpu=1,memory=4Gi,gpu=1"));
    attributes->push_back(Text("engine." + role + "_resource_limit", {}, {},
                               "on pods: what " + pods + " may not pass"));
    attributes->push_back(OrNumber(
        Text("engine." + role + "_pod_priority", {}, {},
             "on pods: high, low, or the share of them that is high (those at both ends): 0.5")));
  }
}

}  // namespace

AttributeSpec Flag(std::string name, AttributeDefault default_value, std::string doc) {
  return Make(AttributeType::kFlag, std::move(name), std::move(default_value), {}, std::move(doc));
}

AttributeSpec Integer(std::string name, AttributeDefault default_value, Range range,
                      std::string doc) {
  return Make(AttributeType::kInteger, std::move(name), std::move(default_value), range,
              std::move(doc));
}

AttributeSpec Number(std::string name, AttributeDefault default_value, Range range,
                     std::string doc) {
  return Make(AttributeType::kNumber, std::move(name), std::move(default_value), range,
              std::move(doc));
}

AttributeSpec Text(std::string name, AttributeDefault default_value,
                   std::vector<std::string> allowed, std::string doc) {
  AttributeSpec spec =
      Make(AttributeType::kText, std::move(name), std::move(default_value), {}, std::move(doc));
  spec.allowed = std::move(allowed);
  return spec;
}

AttributeSpec List(AttributeType type, std::string name, AttributeDefault default_value,
                   Range range, std::string doc) {
  return Make(type, std::move(name), std::move(default_value), range, std::move(doc));
}

void SetDefault(ModelType* type, std::string_view name, const AttributeDefault& value) {
  for (AttributeSpec& spec : type->attributes) {
    if (spec.name == name) {
      spec.default_value = value;
    }
  }
}

AttributeSpec WithAliases(AttributeSpec spec, std::vector<std::string> aliases) {
  spec.aliases = std::move(aliases);
  return spec;
}

AttributeSpec Required(AttributeSpec spec) {
  spec.required = true;
  return spec;
}

AttributeSpec WithoutEffect(AttributeSpec spec) {
  spec.without_effect = true;
  return spec;
}

std::vector<AttributeSpec> TrainingAttributes() {
  std::vector<AttributeSpec> attributes = {
      WithoutEffect(
          Integer("train.verbose", int64_t{0}, Between(0, 2),
                  "taken over from SQLFlow, no effect: progress is reported once a second")),
      Flag("train.disk_cache", {},
           "rows that memory has no room for (256 MiB) are kept for later epochs in a file that "
           "only the process can read; when not given, where the disk is faster than the "
           "database"),
      Text("validation.select", std::string(), {},
           "a SELECT whose rows are the validation rows; replaces the split"),
      Text("validation.metrics", {}, {},
           "metrics to report (a comma list); all of the task when not given"),
      WithoutEffect(
          Integer("validation.steps", int64_t{1}, AtLeast(1),
                  "taken over from SQLFlow: validation here always reads all validation rows")),
      WithoutEffect(Integer("validation.start_delay_secs", int64_t{0}, AtLeast(0),
                            "taken over from SQLFlow, no effect: validation ends each epoch")),
      WithoutEffect(Integer("validation.throttle_secs", int64_t{0}, AtLeast(0),
                            "taken over from SQLFlow, no effect: validation ends each epoch")),
  };
  attributes.push_back(List(AttributeType::kTextList, "features.exclude", {}, {},
                            "columns that are no features, unless COLUMN names them"));
  attributes.push_back(List(AttributeType::kTextList, "features.only", {}, {},
                            "no other column is a feature, unless COLUMN names it"));
  attributes.push_back(
      OrNumber(Text("predict.threshold", {}, {},
                    "how a model of two classes decides, chosen on the validation rows and stored "
                    "with it: f1, cost:5 (of a miss, where a false alarm costs 1), auto, or a "
                    "probability")));
  attributes.push_back(Text(
      "train.calibrate", {}, {"platt", "isotonic"},
      "a classifier's probabilities are fitted, on the validation rows, to how often what it "
      "says is so: platt by a curve of two numbers, isotonic by any that rises (for a thousand "
      "validation rows and more)"));
  attributes.push_back(Text(
      "train.label_scale", {}, {"straight", "root", "log"},
      "on which scale a number is learnt: as it is, as its square root, or as the logarithm of 1 + "
      "it; predictions are on its own. Where a few numbers are far above the others, and nothing "
      "is "
      "said, short trainings of a linear model or a network tell which is best on validation "
      "rows"));
  AttributeSpec weights =
      Text("class_weight", {}, {},
           "what the rows of a class weigh: balanced, or {'yes': 5, 'no': 1} (1 when not named)");
  weights.or_map = true;
  attributes.push_back(std::move(weights));
  AppendSplitAttributes(&attributes);
  AppendEngineAttributes(&attributes);
  AppendPodAttributes(&attributes);
  return attributes;
}

const std::vector<AttributeSpec>& StatementAttributes(std::string_view statement_kind) {
  static const std::vector<AttributeSpec> predict = PredictAttributes();
  static const std::vector<AttributeSpec> evaluate = EvaluateAttributes();
  static const std::vector<AttributeSpec> explain = ExplainAttributes();
  static const std::vector<AttributeSpec> automatic = AutoAttributes();
  static const std::vector<AttributeSpec> tune = TuneAttributes();
  static const std::vector<AttributeSpec> none;
  if (statement_kind == "predict") {
    return predict;
  }
  if (statement_kind == "evaluate") {
    return evaluate;
  }
  if (statement_kind == "auto") {
    return automatic;
  }
  if (statement_kind == "tune") {
    return tune;
  }
  return statement_kind == "explain" ? explain : none;
}

}  // namespace sluice::models
