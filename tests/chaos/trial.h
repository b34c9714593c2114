#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "catalog/data_source.h"
#include "tests/chaos/disturber.h"
#include "tests/chaos/gateway_process.h"
#include "tests/chaos/schedule.h"

namespace sluice::chaos {

struct Sizes {
  int64_t rows = 150'000;  // of each table
  int epochs = 3;          // of the asynchronous modes
  int synchronous_epochs = 2;
  double auc_tolerance = 0.001;
};

// How a job went, and what was wrong with it.
struct Verdict {
  std::vector<std::string> complaints;
  Blows blows;
  double seconds = 0;
  // The longest time in which no row became trained, from the first one on. Progress is told each
  // second and at the ends of epochs, so this is up to a second too much.
  double longest_pause = 0;
  int64_t retried_rows = 0;
};

// A gateway over a SQLite file with both tables, which trains one disturbed job after another.
class Trials {
 public:
  static Result<std::unique_ptr<Trials>> Make(const std::string& binary, const Sizes& sizes);
  ~Trials();

  // Trains what the schedule says while it is carried out, and examines what is left: an answer in
  // time, the ledger, the model beside the one of an undisturbed run, no process, no table, no
  // file. An error: there is nothing to compare with (the undisturbed run failed).
  Result<Verdict> Run(const Schedule& schedule);

 private:
  struct Reference {
    double seconds = 0;
    std::string sha256;
    double auc = 0;
    // Of undisturbed runs, the one of a single worker included: with fewer workers gradients are
    // fresher, and an asynchronous job that loses some may come out better than one that does not.
    double least_auc = 0, best_auc = 0;
  };
  struct Trained {
    Status status;
    RecordingSink answer;
    double seconds = 0;
    double longest_pause = 0;
  };
  Trials(std::filesystem::path folder, const Sizes& sizes)
      : folder_(std::move(folder)), sizes_(sizes) {}
  int Epochs(Mode mode) const;
  std::string Statement(Mode mode, Table table, int workers) const;
  Trained Train(Mode mode, Table table, int workers);
  Result<const Reference*> ReferenceOf(Mode mode, Table table);
  Result<Reference> Measure(Table table);
  // Each adds what it finds wrong.
  Status CheckLedger(const Schedule& schedule, const Trained& trained, Verdict* verdict);
  Status CheckModel(const Schedule& schedule, const Reference& reference, Verdict* verdict);
  Status CheckNothingIsLeft(Verdict* verdict);
  Result<std::vector<std::string>> Tables();
  Result<std::map<std::string, std::string>> Shown(const std::string& statement);

  const std::filesystem::path folder_;
  const Sizes sizes_;
  std::unique_ptr<GatewayProcess> gateway_;
  std::unique_ptr<server::GatewayClient> client_;
  std::unique_ptr<catalog::DataSource> source_;
  std::vector<std::string> tables_;  // that are there when nothing runs
  std::map<std::pair<Mode, Table>, Reference> references_;
};

}  // namespace sluice::chaos
