#pragma once

#include <string>

#include "base/log.h"

namespace sluice::executor {

// The log of a job's own process: a file of at most a megabyte, job-<pid>.log in the folder
// sluice-<user's number> of TMPDIR, which is nobody else's to read. One that stays empty is removed
// with the object, others by a later job, after a week. One in a process.
class JobLog {
 public:
  // From here on what is written to standard error goes there, where the file can be made; and the
  // log of this process, from `level` up.
  explicit JobLog(log::Level level);
  ~JobLog();
  JobLog(const JobLog&) = delete;
  JobLog& operator=(const JobLog&) = delete;

  // Where it is, when it says anything by now; else "".
  std::string PathIfWritten() const;

 private:
  std::string path_;  // "": there is none
};

}  // namespace sluice::executor
