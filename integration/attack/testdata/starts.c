// Starts a program in a way that the first argument names.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char path[4096];

static char *find(const char *name) {
	if (strchr(name, '/')) return strcpy(path, name);
	char *dirs = strdup(getenv("PATH")), *dir;
	while ((dir = strsep(&dirs, ":"))) {
		snprintf(path, sizeof path, "%s/%s", dir, name);
		if (!access(path, X_OK)) return path;
	}
	exit(127);
}

static void *run(void *argv) {
	char **args = argv;
	execve(path, args, environ);
	return 0;
}

int main(int argc, char **argv) {
	const char *way = argv[1];
	char **args = argv + 2;
	find(args[0]);
	int status;
	if (!strcmp(way, "vfork")) {
		pid_t pid = vfork();
		if (!pid) { execve(path, args, environ); _exit(1); }
		waitpid(pid, &status, 0);
	} else if (!strcmp(way, "spawn")) {
		pid_t pid;
		if (!posix_spawn(&pid, path, 0, 0, args, environ)) waitpid(pid, &status, 0);
	} else if (!strcmp(way, "thread")) {
		pthread_t t;
		pthread_create(&t, 0, run, args);
		pthread_join(t, 0);
	} else if (!strcmp(way, "execveat")) {
		syscall(SYS_execveat, open(path, O_PATH), "", args, environ, AT_EMPTY_PATH);
	} else if (!strcmp(way, "fchdir")) {
		char *slash = strrchr(path, '/');
		*slash = 0;
		int dir = open(path, O_PATH | O_DIRECTORY);
		args[0] = "x";
		syscall(SYS_execveat, dir, slash + 1, args, environ, 0);
	} else {
		args[0] = "x";
		syscall(SYS_execve, path, args, environ);
	}
	return 1;
}
