#include "planner/compile/child_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pty.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/eventually.h"

namespace sluice::planner {
namespace {

using ::testing::HasSubstr;

// What a program sees of this process.
TEST(ChildProgram, HasNeitherOurEnvironmentNorOurDescriptorsNorFiles) {
  const auto end = RunChildProgram(
      {"/bin/sh", "-c",
       "env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD=; ls /proc/self/fd | wc -l; "
       "(echo x > /tmp/sluice_child_program); cat >&3"},
      "input", ProgramLimits(), {});
  ASSERT_TRUE(end.ok()) << end.status().ToString();
  EXPECT_EQ(end->answer, "input");
  EXPECT_THAT(end->printed, HasSubstr("5\n"));  // four, and the folder itself
}

// Its number is 1 where the kernel gives it a namespace of its own.
bool HasOwnNamespace() {
  const auto end = RunChildProgram({"/bin/sh", "-c", "echo $$"}, "", ProgramLimits(), {});
  return end.ok() && end->printed == "2\n";
}

TEST(ChildProgram, IsNotStartedWhereItHasToBeContainedAndCannotBe) {
  EXPECT_EQ(CanContainPrograms(), HasOwnNamespace());
  const pid_t child = fork();
  if (child == 0) {
    // As in a container whose filter of system calls refuses unshare.
    sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{static_cast<unsigned short>(std::size(steps)), steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      _exit(3);
    }
    const auto as_it_is = RunChildProgram({"/bin/true"}, "", ProgramLimits(), {});
    _exit(CanContainPrograms() ? 1 : as_it_is.ok() && as_it_is->code == 0 ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// A gateway's environment may hold a password of its database.
TEST(ChildProgram, SeesNoOtherProcess) {
  if (!HasOwnNamespace()) {
    GTEST_SKIP() << "no namespaces here";
  }
  const pid_t other = fork();
  if (other == 0) {
    execle("/bin/sleep", "sleep", "1000", nullptr,
           std::array<const char*, 2>{"PGPASSWORD=of the gateway", nullptr}.data());
    _exit(1);
  }
  const auto end = RunChildProgram(
      {"/bin/sh", "-c",
       "cat /proc/[0-9]*/environ; kill -9 " + std::to_string(other) + "; echo done"},
      "", ProgramLimits(), {});
  EXPECT_EQ(waitpid(other, nullptr, WNOHANG), 0);
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  ASSERT_TRUE(end.ok()) << end.status().ToString();
  EXPECT_THAT(end->printed, HasSubstr("done"));
  EXPECT_THAT(end->printed, ::testing::Not(HasSubstr("of the gateway")));
}

// By no way: a datagram of a pair of sockets may be sent to any place in the file system.
// What it types into a terminal is done by the shell there, as the gateway's user.
TEST(ChildProgram, HasNoTerminal) {
  if (!HasOwnNamespace()) {
    GTEST_SKIP() << "no namespaces here";
  }
  int terminal = -1;
  std::array<char, 64> name{};
  const pid_t child = forkpty(&terminal, name.data(), nullptr, nullptr);
  if (child == 0) {  // its own terminal is this
    const std::string own = ttyname(STDIN_FILENO);
    const auto end = RunChildProgram(
        {"/bin/sh", "-c",
         "(echo x > /dev/tty) 2> /dev/null && echo tty; (echo x > " + own +
             ") 2> /dev/null && echo pts; (echo x > /dev/ptmx) 2> /dev/null && echo ptmx; "
             "echo x > /dev/null && echo null; head -c 3 /dev/urandom | wc -c"},
        "", ProgramLimits(), {});
    _exit(end.ok() && end->printed == "null\n3\n" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  close(terminal);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Each process would have the memory that one may have, and all together those of the gateway.
TEST(ChildProgram, MakesThreadsButNoProcesses) {
  if (!HasOwnNamespace()) {
    GTEST_SKIP() << "no namespaces here";
  }
  ProgramLimits limits;
  limits.contained = true;
  const auto end = RunChildProgram(
      {"/usr/bin/python3", "-c",
       "import os, subprocess, threading\n"
       "def fails(what):\n"
       "  try: what()\n"
       "  except PermissionError: return True\n"
       "print(fails(os.fork), fails(lambda: os.posix_spawn('/bin/true', ['true'], {})),\n"
       "      fails(lambda: subprocess.run(['/bin/true'])))\n"
       "t = threading.Thread(target=lambda: print('thread')); t.start(); t.join()\n"},
      "", limits, {});
  ASSERT_TRUE(end.ok()) << end.status().ToString();
  EXPECT_EQ(end->printed, "True True True\nthread\n");
}

// As in a container: the kernel then makes no new /proc for who is not root.
TEST(ChildProgram, SeesNoOtherProcessWherePartsOfProcAreHidden) {
  if (geteuid() != 0 || !HasOwnNamespace()) {
    GTEST_SKIP() << "no namespaces here";
  }
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65'534;
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("/dev/null", "/proc/version", nullptr, MS_BIND, nullptr) != 0 ||
        setgid(kNobody) != 0 || setuid(kNobody) != 0) {
      _exit(2);
    }
    ProgramLimits limits;
    limits.contained = true;
    const auto end = RunChildProgram({"/bin/sh", "-c", "echo /proc/[0-9]*"}, "", limits, {});
    _exit(end.ok() && end->printed == "/proc/[0-9]*\n" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ChildProgram, HasNoSocketsButItsOwn) {
  const auto end = RunChildProgram(
      {"/usr/bin/python3", "-c",
       "import os, socket\n"
       "made = [lambda: socket.socket(socket.AF_UNIX), lambda: socket.socket(socket.AF_INET),\n"
       "        lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM),\n"
       "        lambda: socket.socket(fileno=0).connect('/dev/log')]\n"
       "for make in made:\n"
       "  try:\n    make()\n    print('made')\n"
       "  except OSError as error:\n    print(error.errno)\n"
       "os.write(3, b'answer')\n"},
      "", ProgramLimits(), {});
  ASSERT_TRUE(end.ok()) << end.status().ToString();
  EXPECT_EQ(end->printed, "13\n13\n13\n13\n");
  EXPECT_EQ(end->answer, "answer");
}

TEST(ChildProgram, EndsAsItDid) {
  const auto how = [](const std::string& script) {
    const auto end = RunChildProgram({"/bin/sh", "-c", script}, "", ProgramLimits(), {});
    EXPECT_TRUE(end.ok());
    return std::pair(end->how, end->code);
  };
  EXPECT_EQ(how("exit 7"), std::pair(ProgramEnd::How::kExited, 7));
  EXPECT_EQ(how("sh -c 'kill -SEGV $$'; exit 3"), std::pair(ProgramEnd::How::kExited, 3));
}

// A session of its own is no way out.
TEST(ChildProgram, LeavesNothingRunning) {
  if (!HasOwnNamespace()) {
    GTEST_SKIP() << "no namespaces here";
  }
  const std::string name = "1000." + std::to_string(getpid());
  const auto end = RunChildProgram(
      {"/bin/sh", "-c", "setsid sleep " + name + " >/dev/null 2>&1 3>&- & sleep 0.1; echo begun"},
      "", ProgramLimits(), {});
  ASSERT_TRUE(end.ok()) << end.status().ToString();
  EXPECT_THAT(end->printed, HasSubstr("begun"));
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    std::ifstream in(process.path() / "cmdline");
    std::string command;
    std::getline(in, command, '\n');  // nothing of a process that has just ended
    EXPECT_EQ(command.find(std::string("sleep\0", 6) + name), std::string::npos)
        << process.path() << " is left";
  }
}

// Neither is it to ask the kernel not to be told of its parent's death.
TEST(ChildProgram, EndsWithItsTimeWhateverItAsksFor) {
  if (!HasOwnNamespace()) {
    GTEST_SKIP() << "no namespaces here";
  }
  const std::string name = "1001." + std::to_string(getpid());
  ProgramLimits limits;
  limits.seconds = 5;
  const auto end = RunChildProgram({"/usr/bin/python3", "-c",
                                    "import ctypes, os, time\n"
                                    "os.setsid()\n"
                                    "ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)\n"  // PR_SET_PDEATHSIG
                                    "os.fork()\n"
                                    "print('begun', flush=True)\n"
                                    "time.sleep(1000)\n",
                                    name},
                                   "", limits, {});
  ASSERT_TRUE(end.ok()) << end.status().ToString();
  EXPECT_EQ(end->how, ProgramEnd::How::kOutOfTime);
  EXPECT_THAT(end->printed, HasSubstr("begun"));
  EXPECT_TRUE(Eventually([&name] {
    for (const auto& process : std::filesystem::directory_iterator("/proc")) {
      std::ifstream in(process.path() / "cmdline");
      std::string command;
      std::getline(in, command, '\n');
      if (command.find(name) != std::string::npos) {
        return false;
      }
    }
    return true;
  }));
}

TEST(ChildProgram, LocksNoFile) {
  const auto end = RunChildProgram({"/usr/bin/python3", "-c",
                                    "import fcntl, struct\n"
                                    "file = open('/etc/passwd')\n"
                                    "lock = struct.pack('hhqqi', 0, 0, 0, 0, 0)\n"
                                    "for command in [6, 7, 37, 38]:\n"
                                    "  try:\n"
                                    "    fcntl.fcntl(file, command, lock)\n"
                                    "    print('locked')\n"
                                    "  except OSError as error:\n    print(error.errno)\n"
                                    "try:\n  fcntl.flock(file, fcntl.LOCK_SH)\n"
                                    "except OSError as error:\n  print(error.errno)\n"},
                                   "", ProgramLimits(), {});
  ASSERT_TRUE(end.ok()) << end.status().ToString();
  EXPECT_EQ(end->printed, "13\n13\n13\n13\n13\n");
}

TEST(ChildProgram, IsKilledWithWhatItHasStarted) {
  ProgramLimits limits;
  limits.seconds = 0.3;
  const auto end = RunChildProgram({"/bin/sh", "-c", "sleep 1000 & sleep 1000"}, "", limits, {});
  ASSERT_TRUE(end.ok()) << end.status().ToString();
  EXPECT_EQ(end->how, ProgramEnd::How::kOutOfTime);
}

}  // namespace
}  // namespace sluice::planner
