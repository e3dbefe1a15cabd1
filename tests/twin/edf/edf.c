/* Stand-in for CSCS's Container Engine: `srun --environment=NAME` runs each task in the environment
 * that an EDF file describes. This half is the Slurm plugin; edf.py, started without any shell, reads
 * the file with the user's own rights and mounts. All mounts are in the task's own namespace. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

SPANK_PLUGIN(edf, 1)

enum { ANSWER = 1 << 20, FAILED = -1 }; /* Slurm goes on after ESPANK_ERROR, which is positive */
static char *name;
static char workdir[4096];
static char answer[ANSWER];

static int on_option(int value, const char *argument, int remote) {
  (void)remote;
  size_t size = strlen(argument) + sizeof "sarus:";
  name = malloc(size);
  if (name) snprintf(name, size, "%s%s", value ? "sarus:" : "", argument);
  return name ? ESPANK_SUCCESS : ESPANK_ERROR;
}

static struct spank_option option = {"environment", "NAME|FILE",
                                     "run the tasks in the environment that this EDF describes", 1, 0, on_option};

/* That of Sarus Suite: the same descriptions, images by their names from a store of its own. */
static struct spank_option sarus = {"edf", "NAME|FILE", "the same by Sarus Suite", 1, 1, on_option};

int slurm_spank_init(spank_t spank, int count, char **words) {
  (void)count;
  (void)words;
  int registered = spank_option_register(spank, &option);
  return registered ? registered : spank_option_register(spank, &sarus);
}

static void write_all(int to, const char *text, size_t size) {
  while (size) {
    ssize_t done = write(to, text, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return;
    text += done;
    size -= (size_t)done;
  }
}

/* Start edf.py, give it the job's variables, and keep what it answers: words that end with NUL. */
static size_t ask(char **variables, const char *uid, const char *gid, const char *cwd, int *status) {
  int in[2], out[2];
  if (pipe(in) || pipe(out)) return 0;
  pid_t child = fork();
  if (child == 0) {
    char *argv[] = {"python3", "-I", "/usr/local/lib/twin-edf.py", name, (char *)uid, (char *)gid, (char *)cwd, NULL};
    char *env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", NULL};
    dup2(in[0], 0);
    dup2(out[1], 1);
    for (int fd = 3; fd < 256; fd++) close(fd);
    execve("/usr/bin/python3", argv, env);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  for (; variables && *variables; variables++) write_all(in[1], *variables, strlen(*variables) + 1);
  close(in[1]);
  size_t size = 0;
  for (ssize_t got; size < ANSWER - 1 && (got = read(out[0], answer + size, ANSWER - 1 - size)) > 0;)
    size += (size_t)got;
  close(out[0]);
  if (child < 0 || waitpid(child, status, 0) < 0) *status = -1;
  return size;
}

int slurm_spank_task_init_privileged(spank_t spank, int count, char **words) {
  (void)count;
  (void)words;
  if (!name) return ESPANK_SUCCESS;
  uid_t uid;
  gid_t gid;
  char **variables, uid_text[16], gid_text[16], cwd[4096] = "/", root[4096] = "";
  if (spank_get_item(spank, S_JOB_UID, &uid) || spank_get_item(spank, S_JOB_GID, &gid) ||
      spank_get_item(spank, S_JOB_ENV, &variables))
    return FAILED;
  spank_getenv(spank, "PWD", cwd, sizeof cwd);
  snprintf(uid_text, sizeof uid_text, "%u", uid);
  snprintf(gid_text, sizeof gid_text, "%u", gid);
  if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
    slurm_error("environment: no namespace: %m");
    return FAILED;
  }
  int status = -1;
  size_t size = ask(variables, uid_text, gid_text, cwd, &status);
  for (char *word = answer; word < answer + size; word += strlen(word) + 1) {
    char *value = strchr(word + 1, '=');
    if (word[0] == 'x') slurm_error("environment %s: %s", name, word + 1);
    if (word[0] == 'r') snprintf(root, sizeof root, "%s", word + 1);
    if (word[0] == 'w') snprintf(workdir, sizeof workdir, "%s", word + 1);
    if (word[0] == 'u') spank_unsetenv(spank, word + 1);
    if (word[0] == 'e' && value) {
      *value = 0;
      spank_setenv(spank, word + 1, value + 1, 1);
      *value = '=';
    }
  }
  if (status || !*root || chroot(root) || chdir("/")) {
    slurm_error("environment %s: cannot be entered", name);
    return FAILED;
  }
  return ESPANK_SUCCESS;
}

/* Slurm enters the job's own folder after the privileged part, so the EDF's comes last. */
int slurm_spank_task_init(spank_t spank, int count, char **words) {
  (void)spank;
  (void)count;
  (void)words;
  if (name && chdir(workdir)) {
    slurm_error("environment %s: workdir %s: %m", name, workdir);
    return FAILED;
  }
  return ESPANK_SUCCESS;
}
