/* SPDX-License-Identifier: Apache-2.0
 * A program with the bug that it is told to have: for tests/process/run_misuse.
 * It goes on as programs do that look at no code. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void __cudaRegisterFunction(void **handle, const char *host, char *device,
                            const char *name, int thread_limit, void *tid,
                            void *bid, void *block, void *grid, int *warps);

static char
    stub; /* stands for `__global__ void scale(float *, const float *)' */

static void launch(void *out, const void *in, unsigned threads,
                   cudaStream_t stream)
{
    void *arguments[] = {&out, &in};

    __cudaRegisterFunction(NULL, &stub, NULL, "_Z5scalePfPKf", -1, NULL, NULL,
                           NULL, NULL, NULL);
    cudaLaunchKernel(&stub, (dim3){1, 1, 1}, (dim3){threads, 1, 1}, arguments,
                     0, stream);
}

/* The cards that CUDA_VISIBLE_DEVICES leaves, by their places on the bus. */
static int print_cards(void)
{
    char place[32];
    int count = 0;

    cudaGetDeviceCount(&count);
    for (int i = 0; i < count; i++)
        if (!cudaDeviceGetPCIBusId(place, sizeof place, i))
            printf("%s ", place);
    puts(".");
    return 0;
}

/* A graph of one launch; launched once more, perhaps, when its memory is gone.
 */
static void graph_launch(void *p, int is_freed)
{
    cudaGraphExec_t exec;
    cudaStream_t stream;
    cudaGraph_t graph;

    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    launch(p, NULL, 32, stream);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphLaunch(exec, stream);
    if (is_freed)
        cudaFree(p), cudaGraphLaunch(exec, stream);
}

int main(int argc, char **argv)
{
    const char *bug = argc > 1 ? argv[1] : "";
    cudaStream_t stream;
    char host[64] = "";
    void *p, *q;

    if (!strcmp(bug, "cards"))
        return print_cards();
    if (cudaMalloc(&p, 8 << 20) || cudaStreamCreate(&stream))
        return 1;
    if (!strcmp(bug, "twice"))
        cudaFree(p), cudaFree(p);
    if (!strcmp(bug, "host-free"))
        cudaFree(host);
    if (!strcmp(bug, "pinned-free"))
        cudaMallocHost(&q, 64), cudaFree(q);
    if (!strcmp(bug, "device-free-host"))
        cudaFreeHost(p);
    if (!strcmp(bug, "inside"))
        cudaFree((char *)p + 512);
    if (!strcmp(bug, "stream"))
        cudaStreamDestroy(stream), cudaStreamSynchronize(stream);
    if (!strcmp(bug, "beyond"))
        cudaMemcpy((char *)p + (8 << 20) - 8, host, 64, cudaMemcpyHostToDevice);
    if (!strcmp(bug, "threads"))
        launch(p, p, 2048, 0);
    if (!strcmp(bug, "freed"))
        cudaFree(p), launch(p, NULL, 32, 0);
    if (!strcmp(bug, "freed-graph"))
        graph_launch(p, 1);
    if (!strcmp(bug, "other-graph"))
        cudaSetDevice(1), graph_launch(p, 0);
    if (!strcmp(bug, "host-argument"))
        launch(p, host, 32, 0);
    if (!strcmp(bug, "other-stream"))
        cudaSetDevice(1), launch(NULL, NULL, 32, stream);
    if (!strcmp(bug, "other-memory"))
        cudaSetDevice(1), launch(p, NULL, 32, 0);
    if (!strcmp(bug, "peer"))
        cudaSetDevice(1), cudaDeviceEnablePeerAccess(0, 0),
            launch(p, NULL, 32, 0);
    if (!strcmp(bug, "other-event")) {
        cudaEvent_t here, there;
        float ms;

        cudaEventCreate(&here), cudaEventRecord(here, 0);
        cudaSetDevice(1);
        cudaEventCreate(&there), cudaEventRecord(there, 0);
        cudaEventElapsedTime(&ms, here, there);
    }
    if (!strcmp(bug, "reset")) {
        cudaDeviceReset();
        cudaStreamSynchronize(stream);
    }
    if (!strcmp(bug, "second")) { /* a process more than the card holds */
        int status = 0;

        if (!fork())
            execl(argv[0], argv[0], "none", (char *)NULL);
        wait(&status);
        return WEXITSTATUS(status);
    }
    if (!strcmp(bug, "none"))
        launch(p, p, 32, stream);
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}
