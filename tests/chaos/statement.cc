#include "tests/chaos/statement.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "tests/chaos/row_check.h"

namespace sluice::chaos {
namespace {

// Enough for the best epoch to be some way before the last.
constexpr int kEpochsWithPatience = 5;
constexpr int kCheckpointsPerJob = 12;

struct Learning {
  std::string columns, type, attributes, clause, label;
};

Learning LearningOf(const Job& job) {
  if (job.table == Table::kIds) {
    return {"id, held, answer", "LinearClassifier",
            fmt::format("model.optimizer='RMSprop', optimizer.learning_rate={}, optimizer.rho=0, "
                        "optimizer.epsilon=1e-12, split.kind='column', split.column='held', ",
                        kRowRate),
            "COLUMN CATEGORY_ID(id, 1000000) ", "answer"};
  }
  const bool census = job.table == Table::kCensus;
  // Clicks are learnt by a model that is a graph. A large rate soon makes a model worse again.
  std::string attributes = fmt::format(
      "model.hidden_units=[16], model.optimizer='Adagrad', optimizer.learning_rate={}, ",
      job.patience > 0 ? 0.4 : 0.05);
  if (!census) {
    attributes += "model.k=4, ";
  }
  if (job.patience > 0) {
    attributes += fmt::format(
        "train.early_stopping_rounds={}, "
        "validation.select='SELECT * FROM {}_held_out', ",
        job.patience, NameOf(job.table));
  }
  return {census ? "*"
                 : "\"label\", i1, i2, i3, i4, i5, i6, c2, c5, c6, c8, c9, c14, c17, c20, c22, "
                   "c23, c25",
          census ? "DNNClassifier" : "DeepFMClassifier", attributes, "",
          census ? "income" : "\"label\""};
}

int BatchOf(const Job& job) {
  return job.patience > 0 ? 512 : 256;  // more epochs with the same number of steps
}

std::string EngineOf(Mode mode) {
  if (mode == Mode::kAllReduce) {
    return "engine.strategy='allreduce'";
  }
  std::string engine = fmt::format("engine.num_ps={}, engine.replicas=1", kServers);
  if (mode == Mode::kSynchronous) {
    engine += ", engine.sync=true";
  } else if (mode == Mode::kBoundedStaleness) {
    engine += fmt::format(", engine.staleness={}", kStaleness);
  }
  return engine;
}

}  // namespace

int EpochsOf(const Job& job, const Sizes& sizes) {
  if (job.one_epoch) {
    return 1;
  }
  const int epochs = SameBits(job.mode) ? sizes.synchronous_epochs : sizes.epochs;
  return job.patience > 0 ? std::max(epochs, kEpochsWithPatience) : epochs;
}

std::string StatementOf(const Job& job, const Sizes& sizes, int workers,
                        const std::string& checkpoints) {
  const Learning learning = LearningOf(job);
  const int epochs = EpochsOf(job, sizes);
  std::string engine = EngineOf(job.mode);
  if (job.checkpoints) {
    engine += fmt::format(
        ", engine.checkpoint_dir='{}', train.save_checkpoints_steps={}", checkpoints,
        std::max<int64_t>(1, sizes.rows * epochs / (int64_t{BatchOf(job)} * kCheckpointsPerJob)));
  }
  return fmt::format(
      "SELECT {} FROM {} TO TRAIN {} WITH {}train.batch_size={}, train.epoch={}, "
      "engine.num_workers={}, engine.seed=1, {} {}LABEL {} INTO {};",
      learning.columns, NameOf(job.table), learning.type, learning.attributes, BatchOf(job), epochs,
      workers, engine, learning.clause, learning.label, kModel);
}

}  // namespace sluice::chaos
