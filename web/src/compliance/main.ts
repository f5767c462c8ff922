import { mount } from 'svelte';
import '../page.css';
import App from './ui/App.svelte';

mount(App, { target: document.getElementById('app')! });
