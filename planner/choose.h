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

// What the user left open, decided by the size and the shape of the data. Pure functions.

struct Schedule {
  uint32_t epochs = 1;
  uint32_t batch_size = 1;
  // Epochs without improvement on the validation rows before the training ends, and before the
  // learning rate is lowered; 0: as many epochs as there are, at one rate.
  uint32_t patience = 0;
  uint32_t plateau = 0;
};
// `epochs_open`: the statement does not say how long to train. `validates`: there will be
// validation rows.
Schedule ChooseSchedule(models::ModelFamily family, int64_t rows, bool epochs_open, bool validates);

// A network or a linear model of so few rows, of which nothing is said: in how many folds its rows
// are cut, each of which says how a model trained on the others is doing. 0: rows enough to set
// some aside.
uint32_t ChooseFolds(int64_t rows);
// Its epochs while that is seen, and how long it waits for something better.
Schedule ChooseFoldSchedule(int64_t rows);

// How validation rows are set aside where the attributes do not say: none of a table so small that
// they would be missed, else a share that does not grow with the table.
Status ChooseSplit(const AttributeSet& attributes, models::ModelFamily family, int64_t rows,
                   const std::string& group_column, uint64_t seed, plan::Split* split);

struct Work {
  int64_t rows = 0;
  uint32_t batch_size = 1;
  int64_t columns = 0;
  int64_t epochs = 1;
  int64_t parameters = 0;
  int64_t dense_parameters = 0;  // those that every batch needs
  bool trees = false;
};
Status ChooseStrategy(const AttributeSet& attributes, const Work& work, const Options& options,
                      plan::Strategy* strategy, std::vector<std::string>* notes);

// Whole batches, large enough to be worth a query. On several processes or in synchronous mode:
// small enough to hand out fairly, and as many as fill the lanes of whole rounds. A function of the
// table, the batch and the micro-batches alone: not of the number of workers, nor of where they
// run. A table of which the database only estimates the cut has one cut for every mode.
int64_t ChooseRowsPerShard(int64_t rows, uint32_t batch_size, const plan::Strategy& strategy);

// "512MB", "2GB", "1.5Gi" in bytes.
Result<int64_t> ReadBytes(const std::string& text, Span span);

}  // namespace sluice::planner
