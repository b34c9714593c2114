#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/master/master.h"
#include "elastic/storage/journal.h"

namespace sluice::elastic {

struct JobEndpoint;
struct Succession;
struct TrainingJob;

// From what the master of a job on a fleet is made.
struct MasterOrigin {
  const TrainingJob& job;
  const JobEndpoint& endpoint;
  const Succession& succession;
  bool anew = false;  // the journal describes a run that is over
};

// Names of the workers that the endpoint says were started before.
std::vector<std::string> LivingWorkers(const JobEndpoint& endpoint);

// The job's first master, from its checkpoint if it has one, or one that continues from the end of
// the previous one's journal. With a journal, `term` is set to its new term, and entries of an
// earlier master are refused from then on. Errors: those of the journal, and of a checkpoint or
// entries that do not fit the job.
Result<Master> BeginOrTakeOver(const MasterOrigin& origin, Master::Options options,
                               JournalTerm* term);

}  // namespace sluice::elastic
