#pragma once

#include <string>

#include "base/log.h"

namespace sluice::executor {

// The log of a job's own process: a file of at most a megabyte, job-<pid>.log in the folder
// sluice-<user id> of TMPDIR, which only the user can read. A file that stays empty is removed with
// the object, others by a later job, after a week. One per process.
class JobLog {
 public:
  // From here on standard error goes to the file, if it can be created, and so does this process's
  // log, from `level` up.
  explicit JobLog(log::Level level);
  ~JobLog();
  JobLog(const JobLog&) = delete;
  JobLog& operator=(const JobLog&) = delete;

  // Its path if it has content, else "".
  std::string PathIfWritten() const;

 private:
  std::string path_;  // "": there is none
};

}  // namespace sluice::executor
