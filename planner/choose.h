#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "models/registry/registry.h"
#include "planner/attributes.h"
#include "planner/planner.h"

namespace sluice::plan {
class Split;
class Strategy;
}  // namespace sluice::plan

namespace sluice::planner {

// Chooses what the user left open, by the size and the shape of the data. Pure functions.

struct Schedule {
  uint32_t epochs = 1;
  uint32_t batch_size = 1;
  // Epochs without improvement on the validation rows before the training ends, and before the
  // learning rate is lowered; 0: all epochs run, at one rate.
  uint32_t patience = 0;
  uint32_t plateau = 0;
};
// `epochs_open`: the statement does not set the length of the training. `validates`: there will be
// validation rows.
Schedule ChooseSchedule(models::ModelFamily family, int64_t rows, bool epochs_open, bool validates);

// For a network or a linear model with few rows and no settings: the number of folds, each of which
// validates a model trained on the others. 0: there are enough rows to set some aside.
uint32_t ChooseFolds(int64_t rows);
// The number of epochs with folds, and how many may pass without improvement.
Schedule ChooseFoldSchedule(int64_t rows);

// Chooses how validation rows are set aside if the attributes do not say: none in a small table
// that needs them for training, else a share that does not grow with the table.
Status ChooseSplit(const AttributeSet& attributes, models::ModelFamily family, int64_t rows,
                   const std::string& group_column, uint64_t seed, plan::Split* split);

struct Work {
  int64_t rows = 0;
  uint32_t batch_size = 1;
  int64_t columns = 0;
  int64_t epochs = 1;
  int64_t parameters = 0;
  int64_t dense_parameters = 0;  // those that every batch uses
  bool trees = false;
  bool grows = false;  // trees that workers can train (models::GradientBoosting::GrowsHere)
};
// Of trees, which workers grow by passes over their rows: without servers.
void MakePasses(plan::Strategy* strategy);
// Whether an attribute asks for processes other than the gateway's own.
bool RequestsFleet(const AttributeSet& attributes);
Status ChooseStrategy(const AttributeSet& attributes, const Work& work, const Options& options,
                      plan::Strategy* strategy, std::vector<std::string>* notes);

// Whole batches, enough to be worth a query. On several processes or in synchronous mode: small
// enough to distribute evenly, and a number that fills the lanes of whole rounds. Depends only on
// the table, the batch and the micro-batches, not on the number of workers or where they run. If
// the database only estimates a table's shards, all modes cut it the same way. `batches`: as many
// as the statement asks for.
int64_t ChooseRowsPerShard(int64_t rows, uint32_t batch_size, const plan::Strategy& strategy,
                           std::optional<int64_t> batches = {});
// Enough rows for the whole table in one shard, whose rows are shuffled as one; 0: it would take
// too much memory. `rows` may be an estimate that is somewhat too low.
int64_t RowsOfWholeTable(int64_t rows, int64_t columns, uint32_t batch_size);

// "512MB", "2GB", "1.5Gi" as a number of bytes.
Result<int64_t> ReadBytes(const std::string& text, Span span);

}  // namespace sluice::planner
